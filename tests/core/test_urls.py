"""Secrets in URLs are not shown, wherever they stand and however malformed the URL is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.urls import masked_url


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("sqlite:///./var/evidence.db", "sqlite:///./var/evidence.db", id="nothing-to-hide"),
        pytest.param("postgresql://h:5432/db", "postgresql://h:5432/db", id="port"),
        pytest.param("postgresql+psycopg://u:p@h/db", "postgresql+psycopg://u:***@h/db", id="password"),
        pytest.param(
            "postgresql+psycopg://u:p@ss@h/db?password=zzz",
            "postgresql+psycopg://u:***@h/db?password=***",
            id="unescaped-at-and-parameter",
        ),
        pytest.param("postgresql://u:p:q/r@h/db", "postgresql://u:***@h/db", id="colon-and-slash"),
        pytest.param("postgresql://u/x:p@h/db", "postgresql://***@h/db", id="slash-in-user"),
        pytest.param("postgresql://:p@h/db", "postgresql://:***@h/db", id="no-user"),
        pytest.param("https://token@h/x", "https://***@h/x", id="token-as-user"),
        pytest.param("postgresql://u:p?q@h/db", "postgresql://***", id="question-mark-in-password"),
        pytest.param("postgresql://u:p@h/db?password=a@b", "postgresql://***", id="at-in-parameter"),
        pytest.param(
            "postgresql:///db?host=h&sslmode=require&sslpassword=a&passfile=b&pass%77ord=c",
            "postgresql:///db?host=h&sslmode=require&sslpassword=***&passfile=***&pass%77ord=***",
            id="parameters",
        ),
        pytest.param("postgresql://h/db?options=a;password=b", "postgresql://h/db?options=***", id="in-a-value"),
        pytest.param("http:/u:p@h", "http:***@h", id="one-slash"),
        pytest.param("u:p@h:80", "u:***@h:80", id="no-scheme"),
        pytest.param("host=db user=u dbname=d", "host=db user=u dbname=d", id="words"),
        pytest.param("host=db password=x user=u", "***", id="password-among-words"),
        pytest.param("host=db PGPASSWORD = 'x y'", "***", id="quoted-password-among-words"),
        pytest.param("host=db password=x?y", "***", id="question-mark-in-a-word"),
        pytest.param("", "", id="empty"),
    ],
)
def test_a_url_is_shown_without_its_secrets(text: str, shown: str) -> None:
    assert masked_url(text) == shown


@given(st.text(alphabet="ab:@/?&=#%;", max_size=12), st.sampled_from(["", "?sslmode=x&password=SECRET"]))
def test_a_password_is_not_shown_whatever_else_it_holds(noise: str, query: str) -> None:
    assert "SECRET" not in masked_url(f"postgresql://user:SECRET{noise}SECRET@host/db{query}")
