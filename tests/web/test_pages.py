"""Pages: valid, complete, inert whatever strangers wrote, readable by everybody."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest
from playwright.sync_api import Browser, sync_playwright

from app.core.coordinate import Criteria
from app.core.identity import GITHUB_OAUTH_ISSUER, SignerIdentity
from app.core.verdict import State
from app.web.page_values import short_name
from app.web.pages import PAGE_CSP
from tests.support.htmlcheck import Page
from tests.support.runs import CHECK, OLDER, RECIPE, make_run, person, version, workflow
from tests.support.webapp import FakeContainer, client_of, make_container

HOSTILE = "</td></table><script>alert(1)</script><img src=x onerror=alert(2)>\"' \u202egpj\u200b\x1b[31m{{7*7}}{% x %}"
RECIPE_PAGE = f"/ui/recipes/{RECIPE}"


def page(client: httpx.Client, path: str, status: int = 200) -> Page:
    answer = client.get(path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"] == PAGE_CSP
    return Page(answer.text)


def fill(container: FakeContainer) -> None:
    """Every state, a drifted run, a stranger, a set-aside run, a long workflow name."""
    container.store.put_catalogue(
        [version(declared=[CHECK, ("performance", "nccl")])], replace=False, project=container.allowlist.project
    )
    container.keep(make_run(person("dev-one"), {CHECK: "passed", ("performance", "nccl"): "passed"}))
    container.keep(
        make_run(
            person("dev-two"),
            {CHECK: "passed", ("conformance", "dra"): "skipped"},
            days=40,
            recipe_digest=OLDER,
            skip_reason="no-gpu-nodes",
        )
    )
    container.keep(make_run(workflow()))
    container.keep(make_run(person("stranger"), "failed"))
    for service, status in (("gke", "failed"), ("aks", "passed"), ("kind", "skipped")):
        container.keep(make_run(person("dev-one"), status, criteria=Criteria(service, "h100", "ubuntu", "training")))
    container.keep(make_run(workflow(), "failed", criteria=Criteria("aks", "h100", "ubuntu", "training")))


@pytest.mark.parametrize("path", ["/", "/ui"])
def test_the_root_leads_to_the_recipes(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.headers["location"]) == (307, "/ui/recipes")


def test_an_empty_service_says_what_to_do(client: httpx.Client) -> None:
    shown = page(client, "/ui/recipes").shown
    assert "No recipes yet" in shown
    assert "aicr evidence submit" in shown


def test_the_verdict_table_shows_every_recipe_with_words_for_states(
    container: FakeContainer, client: httpx.Client
) -> None:
    fill(container)
    found = page(client, "/ui/recipes")
    for text in ("CONTESTED", "FAILING", "SINGLE", "UNTESTED", "DRIFTED", RECIPE, "h100-aks-ubuntu-training"):
        assert text in found.shown
    assert "4 of 4 recipes" in found.shown
    assert RECIPE_PAGE in found.links
    assert "/recipes?limit=200" in found.links
    data = client.get(f"/recipes/{RECIPE}").json()
    for line in data["verified"] + data["notProven"]:
        assert line in found.shown


def test_filters_stand_in_the_url_and_in_the_form(container: FakeContainer, client: httpx.Client) -> None:
    fill(container)
    answer = client.get("/ui/recipes?service=gke&state=&q=&accelerator=")
    found = Page(answer.text)
    assert "1 of 4 recipes match the filter" in found.shown
    assert "<option selected>gke</option>" in answer.text
    assert "/recipes?service=gke&limit=200" in found.links
    assert "No recipe matches" in page(client, "/ui/recipes?q=zzz").shown


def test_more_recipes_than_a_page_are_linked(container: FakeContainer, client: httpx.Client) -> None:
    many = [version(recipe=f"r{number:03}") for number in range(205)]
    container.store.put_catalogue(many, replace=False, project=container.allowlist.project)
    first = page(client, "/ui/recipes")
    following = next(link for link in first.links if "cursor=" in link)
    second = page(client, following)
    assert ("r000" in first.shown, "r204" in first.shown, "r204" in second.shown) == (True, False, True)


@pytest.mark.parametrize(("query", "sizes"), [("", [200, 5]), ("?limit=90&q=r", [90, 90, 25])])
def test_each_page_links_exactly_its_rows_as_json(
    container: FakeContainer, client: httpx.Client, query: str, sizes: list[int]
) -> None:
    many = [version(recipe=f"r{number:03}") for number in range(205)]
    container.store.put_catalogue(many, replace=False, project=container.allowlist.project)
    found: list[int] = []
    path: str | None = f"/ui/recipes{query}"
    while path is not None:
        drawn = page(client, path)
        twin = next(link for link in drawn.links if link.startswith("/recipes?"))
        names = [line["recipe"] for line in client.get(twin).json()["items"]]
        assert names == [name for name in (f"r{number:03}" for number in range(205)) if name in drawn.shown]
        found.append(len(names))
        path = next((link for link in drawn.links if link.startswith("/ui/recipes?") and "cursor=" in link), None)
    assert found == sizes


def test_a_recipe_page_is_its_json_drawn(container: FakeContainer, client: httpx.Client) -> None:
    fill(container)
    found = page(client, RECIPE_PAGE)
    data = client.get(f"/recipes/{RECIPE}").json()
    for row in data["rows"]:
        assert row["name"] in found.shown
    for item in data["missing"]:
        assert item["message"].replace("`", "") in found.shown
    for line in data["verified"] + data["notProven"]:
        assert line in found.shown
    for text in ("DRIFTED", "reported only", "no-gpu-nodes", "d…e@example.org", "NVIDIA/aicr uat-aws.yaml@main"):
        assert text in found.shown
    assert f"/recipes/{RECIPE}" in found.links
    assert "dev-one" not in found.shown


def test_a_recipe_page_says_why_a_listed_workflows_record_has_no_weight(
    container: FakeContainer, client: httpx.Client
) -> None:
    container.keep(make_run(workflow(), weightless="called by someone-else/repo"))
    assert "first-party, no weight: called by someone-else/repo" in page(client, RECIPE_PAGE).shown


def test_the_lens_of_a_recipe_page_stands_in_the_url(container: FakeContainer, client: httpx.Client) -> None:
    fill(container)
    answer = client.get(f"{RECIPE_PAGE}?aicrVersion=v1.0.0&k8s=1.35&confirmBy=party&asOf=")
    found = Page(answer.text)
    assert "at v1.0.0" in found.shown
    assert "<option selected>v1.0.0</option>" in answer.text
    assert "No run at this version" in page(client, f"{RECIPE_PAGE}?aicrVersion=v9").shown


def test_the_form_of_a_recipe_page_keeps_the_whole_lens(container: FakeContainer, client: httpx.Client) -> None:
    fill(container)
    container.clock.now = container.clock.now.replace(day=22)
    lens = "aicrVersion=v1.0.0&aicrCommit=0123abc&k8s=1.35&confirmBy=party&asOf=2026-06-21T02:00:00%2B02:00"
    form = client.get(f"{RECIPE_PAGE}?{lens}").text.partition("<form")[2].partition("</form>")[0]
    assert '<input name="asOf" value="2026-06-21T00:00:00Z"' in form
    assert '<input name="aicrCommit" value="0123abc"' in form
    assert '<input name="k8s" value="1.35"' in form
    assert '<input name="asOf" value=""' in client.get(RECIPE_PAGE).text


def test_any_is_what_a_recipe_leaves_open_and_all_is_no_filter(container: FakeContainer, client: httpx.Client) -> None:
    fill(container)
    text = client.get("/ui/recipes").text
    assert '<select name="platform"><option value="">all</option><option>any</option><option>kubeflow</option>' in text
    found = page(client, "/ui/recipes?platform=any")
    assert "3 of 4 recipes match the filter" in found.shown


def test_a_stale_digest_is_a_warning(container: FakeContainer, client: httpx.Client) -> None:
    container.store.put_catalogue([version()], replace=False, project=container.allowlist.project)
    container.keep(make_run(person("dev-one"), recipe_digest=OLDER))
    container.keep(make_run(person("dev-two")))
    assert "Not about today's recipe" in page(client, RECIPE_PAGE).shown


def test_what_strangers_wrote_is_inert_and_visible(container: FakeContainer, client: httpx.Client) -> None:
    """Names, versions, reasons and identities of a hostile run are text, with hidden characters spelled out."""
    signer = SignerIdentity(GITHUB_OAUTH_ISSUER, f"mallory{HOSTILE.replace('@', '')}@example.org")
    run = make_run(
        signer,
        {("deployment", HOSTILE): "skipped", ("conformance", "ok"): HOSTILE},
        version=HOSTILE,
        commit="0" * 40,
        k8s=HOSTILE,
        skip_reason=HOSTILE,
        overridden=[HOSTILE],
        images=[HOSTILE],
        weightless=HOSTILE,
    )
    hostile_claims = replace(run.signer.claims, run_url="javascript:alert(3)")
    container.keep(replace(run, signer=replace(run.signer, claims=hostile_claims)))
    lens = "?" + urlencode({"aicrVersion": HOSTILE, "k8s": "<b>"})
    for path in ("/ui/recipes", RECIPE_PAGE, RECIPE_PAGE + lens):
        text = client.get(path).text
        shown = Page(text).shown
        assert "<script" not in text
        assert "<img" not in text
        assert not set("\u202e\u200b\x1b") & set(text)
        assert "{{7*7}}" in shown or path == "/ui/recipes"
    assert "\\u202egpj\\u200b\\x1b[31m" in Page(client.get(RECIPE_PAGE).text).shown


def test_a_hostile_query_is_inert(client: httpx.Client) -> None:
    for path in ("/ui/recipes", f"/ui/recipes/{'%3Cscript%3E'}"):
        answer = client.get(path, params={"q": HOSTILE, "aicrVersion": HOSTILE, "service": HOSTILE})
        Page(answer.text)
        assert "<script" not in answer.text


def test_errors_of_pages_are_pages(client: httpx.Client) -> None:
    found = page(client, "/ui/recipes/unknown", status=404)
    assert "no recipe 'unknown' is known" in found.shown
    assert "NOT_FOUND" in found.shown
    assert page(client, "/ui/recipes?cursor=x", status=400).headings == [1]
    assert page(client, "/ui/nothing/here", status=404).headings == [1]


PAGES = (
    *(("/ui/recipes", 200), ("/docs", 200)),
    *(("/ui/recipes/unknown", 404), ("/ui/x", 404), ("/ui/recipes?limit=x", 400)),
)


def test_the_sandbox_says_so_on_every_page() -> None:
    with client_of(make_container(sandbox=True)) as client:
        for path, status in PAGES:
            assert "nothing here is real evidence" in page(client, path, status).shown
    with client_of(make_container()) as client:
        for path, status in PAGES:
            assert "real evidence" not in page(client, path, status).shown


def test_no_two_landmarks_of_a_page_share_a_name() -> None:
    with client_of(container := make_container(sandbox=True)) as client:
        fill(container)
        for path in ("/ui/recipes", RECIPE_PAGE, "/docs"):
            text = client.get(path).text
            labels = re.findall(r'aria-label="([^"]+)"', text)
            named = re.findall(r'<section[^>]* aria-labelledby="([^"]+)"', text)
            labels += [match[1] for each in named if (match := re.search(rf'<h2 id="{each}">(.*?)</h2>', text))]
            assert labels[0] == "Sandbox"
            assert len(labels) > len(named)
            assert sorted(set(labels)) == sorted(labels), path


def test_what_scrolls_sideways_is_reached_by_keyboard() -> None:
    with client_of(make_container()) as client:
        for path in ("/ui/recipes", "/docs"):
            text = client.get(path).text
            assert '<pre tabindex="0"><code>' in text
            assert "<pre>" not in text


def test_static_files_are_the_two_that_pages_use(client: httpx.Client) -> None:
    style = next(link for link in Page(client.get("/ui/recipes").text).links if "style.css" in link)
    assert "immutable" in client.get(style).headers["cache-control"]
    assert "immutable" not in client.get("/static/style.css?v=old").headers["cache-control"]
    assert client.get("/static/icon.svg").headers["content-type"] == "image/svg+xml"
    for other in ("../app.py", "..%2fapp.py", "nope.css"):
        assert client.get(f"/static/{other}").status_code == 404


@pytest.mark.parametrize(
    ("label", "identity", "expected"),
    [
        ("Lab One", "https://github.com/o/r/.github/workflows/w.yaml@refs/heads/main", "Lab One"),
        ("", "https://github.com/o/r/.github/workflows/w.yaml@refs/heads/release/v1", "o/r w.yaml@release/v1"),
        ("", "https://github.com/o/r/.github/workflows/w.yaml@refs/pull/1/merge", "o/r w.yaml@refs/pull/1/merge"),
        ("", "d…e@example.org", "d…e@example.org"),
        ("", "https://oidc.example.org/attest", "https://oidc.example.org/attest"),
    ],
)
def test_a_column_is_headed_by_a_short_name(label: str, identity: str, expected: str) -> None:
    assert short_name(label, identity) == expected


# --- colours ---------------------------------------------------------------------------------------


def luminance(colour: str) -> float:
    digits = colour.lstrip("#")
    digits = "".join(ch * 2 for ch in digits) if len(digits) == 3 else digits
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    light, dark = sorted((luminance(one), luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_every_text_colour_reaches_wcag_aa_on_every_ground(client: httpx.Client, scheme: int) -> None:
    style = client.get("/static/style.css").text
    block = re.findall(r":root \{([^}]*)\}", style)[scheme]
    colours = dict(re.findall(r"--([a-z]+): (#[0-9a-f]+)", block))
    texts = [name for name in colours if name not in {"paper", "soft", "line", "warn"}]
    assert {state.value.lower() for state in State} <= set(texts)
    for name in texts:
        for ground in ("paper", "soft"):
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
    assert contrast(colours["ink"], colours["warn"]) >= 4.5


# --- in a browser ----------------------------------------------------------------------------------


@pytest.fixture
def browser() -> Iterator[Browser]:
    flags = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--no-first-run"]
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=flags)
        yield started
        started.close()


@pytest.mark.browser
def test_a_browser_runs_nothing_and_asks_nobody_else(
    container: FakeContainer, client: httpx.Client, browser: Browser, tmp_path: Path
) -> None:
    """Hostile names raise no dialog, no page logs an error, every request stays on this server, filters work."""
    fill(container)
    container.keep(make_run(person("mallory"), {("deployment", HOSTILE): "passed"}, version=HOSTILE))
    base = str(client.base_url).rstrip("/")
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    dialogs: list[str] = []
    errors: list[str] = []
    asked: list[str] = []
    tab.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    tab.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    tab.on("request", lambda request: asked.append(request.url))
    for path in ("/ui/recipes", RECIPE_PAGE, "/docs"):
        tab.goto(base + path)
        tab.screenshot(path=tmp_path / "page.png", full_page=True)
        assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    tab.goto(base + "/ui/recipes")
    tab.get_by_label("Service").select_option("gke")
    tab.get_by_role("button", name="Filter").click()
    assert tab.locator("table.verdicts tbody tr").count() == 1
    tab.locator("table.verdicts tbody a").first.click()
    assert tab.url == f"{base}/ui/recipes/h100-gke-ubuntu-training"
    tab.set_viewport_size({"width": 360, "height": 800})
    for path in ("/ui/recipes", RECIPE_PAGE, "/docs"):
        tab.goto(base + path)
        assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), path
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Skip to content"
    assert (dialogs, errors) == ([], [])
    assert all(url.startswith(base + "/") for url in asked)
