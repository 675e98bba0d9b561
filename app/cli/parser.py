"""Verbs and options of `aicr evidence`; nothing heavy is imported here, so that help is quick."""

import argparse
from pathlib import PurePath

from app import __version__
from app.cli.exits import INVALID
from app.cli.options import Formatter, Parser, add_api, add_format, add_token, add_verb, port_number, seconds


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser: argparse.ArgumentParser = Parser(
        prog="aicr evidence",
        formatter_class=Formatter,
        description="Says whether a GPU-cluster recipe is really confirmed, and by whom.",
        epilog="Exit codes: 0 done; 2 invalid input or verdict; 3 not found; 4 unauthorized; 5 no verdict; "
        "6 unreachable; 7 rate limited; 8 internal; 9 aborted.\n"
        "Settings come from AICR_EVIDENCE_* (see `aicr evidence settings`).",
    )
    parser.add_argument("--version", action="version", version=f"aicr-evidence {__version__}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    _verify(verbs)
    _submit(verbs)
    _questions(verbs)
    _digest(verbs)
    _trees(verbs)
    _allowlist(verbs)
    _catalogue(verbs)
    _service(verbs)
    return parser


def _verify(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(
        verbs,
        "verify",
        "verify:run",
        "judge a bundle: a directory, a pointer file, an OCI reference or an archive tar",
        "Offline with the local trust roots and the options given here.\n"
        "With --api the service judges by its own settings; options that change what is judged or how are refused.\n"
        "Exit codes: 0 valid; 2 invalid, valid with recorded phase failures, or valid and FILE can not be written; "
        "5 could not be read, try again; 9 aborted; 6 the service of --api can not be reached; 4 its token is wrong.\n"
        "\n"
        "examples:\n"
        "  aicr evidence verify ./summary-bundle --trusted-root trusted_root.json --format json\n"
        "  aicr evidence verify ghcr.io/nvidia/aicr-evidence@sha256:<64 hex>\n"
        "  aicr evidence verify --signature-only artifact.sigstore.json",
    )
    parser.add_argument("input", metavar="INPUT", help="what to judge; with --signature-only a raw Sigstore bundle")
    parser.add_argument(
        "--signature-only", action="store_true", help="check a raw Sigstore bundle and print who signed what"
    )
    parser.add_argument(
        "--strict", action="store_true", help="findings beyond upstream's checks fail too, as they do on submit"
    )
    parser.add_argument(
        "--trusted-root",
        metavar="FILE",
        action="append",
        default=[],
        help="trust root to use, repeatable; public-good is the embedded one (default: AICR_EVIDENCE_TRUSTED_ROOT)",
    )
    parser.add_argument("--expected-issuer", metavar="URL", help="the signer's OIDC issuer must be this")
    parser.add_argument(
        "--expected-identity-regexp", metavar="RE", help="RE2 search in the signer's identity: anchor it with ^ and $"
    )
    parser.add_argument("--bundle", metavar="REF", help="where to pull from when the pointer names no registry")
    parser.add_argument("--registry-plain-http", action="store_true", help="speak HTTP without TLS to that registry")
    parser.add_argument("--registry-insecure-tls", action="store_true", help="do not check that registry's certificate")
    parser.add_argument("--allow-unpinned-tag", action="store_true", help="accept a reference that names only a tag")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the report there instead of to stdout")
    add_format(parser, ("text", "markdown", "json"), short=True)
    parser.add_argument("--api", metavar="URL", help="let this service judge instead (POST /verify)")
    add_token(parser, "AICR_EVIDENCE_API_TOKEN, else none; only with --api")
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=seconds, default=120.0, help="one whole pull (default: 120)"
    )


def _submit(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(
        verbs,
        "submit",
        "submit:run",
        "send a bundle to the service (POST /evidence) and say what changed",
        "Anonymous unless a token is given; with one, the service reads private registries with its own logins.\n"
        "A token is sent by https, or to this machine alone.\n"
        "Exit codes: 0 stored; 2 refused; 4 the token is wrong; 5 no verdict was reached, try again; 6 the service can "
        "not be reached.",
    )
    parser.add_argument("input", metavar="INPUT", help="a pointer file, or registry/repo@sha256:<64 hex>")
    parser.add_argument("--dry-run", action="store_true", help="judge, store nothing")
    parser.add_argument(
        "--fail-on",
        choices=("refused", "phases", "never"),
        default="refused",
        help="which verdict makes the exit 2: a refusal, recorded phase failures too, or none; without a verdict it is "
        "5 or 6 in any case (default: refused)",
    )
    add_format(parser)
    add_api(parser)
    add_token(parser, "AICR_EVIDENCE_API_TOKEN, else none")


def _questions(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    status = add_verb(
        verbs, "status", "ask:status", "show every recipe's verdict, or one recipe's grid", prints_answer=True
    )
    status.add_argument("recipe", metavar="RECIPE", nargs="?", help="one recipe's grid instead of the list")
    status.add_argument("--aicr-version", metavar="V", help="only runs of this AICR version count together")
    why = add_verb(
        verbs,
        "why",
        "ask:why",
        "say what would make a recipe CONFIRMED, and why it is what it is",
        prints_answer=True,
    )
    why.add_argument("recipe", metavar="RECIPE", help="its name, as `status` lists it")
    answer = add_verb(
        verbs,
        "answer",
        "ask:answer",
        "is there a recipe confirmed on hardware like mine? criteria, or a snapshot",
        "Give criteria, or -s SNAPSHOT (a file written by `aicr snapshot`); the snapshot is sent and not kept.",
        prints_answer=True,
    )
    answer.add_argument("-s", "--snapshot", metavar="FILE", help="snapshot.yaml of the cluster")
    for name in ("service", "accelerator", "os", "intent", "platform"):
        answer.add_argument(f"--{name}", metavar=name.upper(), help=f"the recipe's {name}; wins over the snapshot's")
    for parser in (status, why, answer):
        add_format(parser)
        add_api(parser)


def _digest(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(
        verbs,
        "digest",
        "digest:run",
        "print the bare hex digest that evidence of a resolved recipe carries",
        "The file is a resolved recipe (kind: RecipeResult), `-` reads stdin. An overlay must be resolved first.",
        prints_answer=True,
    )
    parser.add_argument("-r", "--recipe", metavar="FILE", required=True, help="the resolved recipe")
    parser.add_argument(
        "--predicate-type",
        choices=("v1", "v2", "v3"),
        default="v3",
        help="v3 leaves metadata.version out (default: v3)",
    )


def _trees(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    check = add_verb(
        verbs,
        "check-tree",
        "tree:check",
        "check a committed pointer tree, one line per violation",
        "Exit codes: 0 clean; 1 violations; 2 can not run.",
        can_not_run=INVALID,
    )
    check.add_argument("directory", metavar="DIR", nargs="?", help="default: AICR_EVIDENCE_POINTERS")
    check.add_argument("--allowlist", metavar="FILE", help="default: DIR/allowlist.yaml, else AICR_EVIDENCE_ALLOWLIST")
    check.add_argument("--allow-pending", action="store_true", help="accept flat, unsigned root pointers as transient")
    index = add_verb(
        verbs,
        "index",
        "tree:index",
        "print the sorted index of a pointer tree",
        "Exit codes: 0 written or equal; 1 --check found a difference; 2 can not run.\n"
        "With --format json the same content is printed as JSON; a file is YAML, and --check prints nothing.",
        can_not_run=INVALID,
        prints_answer=True,
    )
    index.add_argument("directory", metavar="DIR", nargs="?", help="default: AICR_EVIDENCE_POINTERS")
    index.add_argument("--allowlist", metavar="FILE", help="default: DIR/allowlist.yaml, else AICR_EVIDENCE_ALLOWLIST")
    index.add_argument("--out", metavar="FILE", help="write there instead of to stdout")
    index.add_argument(
        "--check", action="store_true", help="compare with --out (default DIR/pointers.yaml) instead of writing"
    )
    for parser in (check, index):
        add_format(parser)


def _allowlist(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    group = verbs.add_parser("allowlist", help="check, ask and compare allowlists", formatter_class=Formatter)
    actions = group.add_subparsers(title="actions", metavar="ACTION", required=True)
    check = add_verb(
        actions,
        "check",
        "allowlist:check",
        "load a file and say what is wrong with it",
        "Exit codes: 0 loads; 2 does not. With --format json a file that does not load is a document too.",
        can_not_run=INVALID,
    )
    check.add_argument("file", metavar="FILE", help="an allowlist")
    classify = add_verb(
        actions, "classify", "allowlist:classify", "say what class a signer has under a file", prints_answer=True
    )
    classify.add_argument("file", metavar="FILE", help="an allowlist")
    classify.add_argument("--issuer", metavar="URL", required=True, help="the signer's OIDC issuer")
    classify.add_argument("--identity", metavar="SAN", required=True, help="the certificate's subject name")
    diff = add_verb(
        actions,
        "diff",
        "allowlist:diff",
        "compare two files, and say what the change would do to every recipe",
        "Reads the evidence of AICR_EVIDENCE_DATABASE_URL and changes nothing.\n"
        "Without a database only entries are compared.",
        prints_answer=True,
    )
    diff.add_argument("old", metavar="OLD", help="the allowlist as it is")
    diff.add_argument("new", metavar="NEW", help="the allowlist as it would be")
    activate = add_verb(actions, "activate", "allowlist:activate", "put a file into force on a server database")
    activate.add_argument("file", metavar="FILE", help="an allowlist")
    for parser in (check, classify, diff, activate):
        add_format(parser)


def _catalogue(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    group = verbs.add_parser("catalogue", help="tell the service today's recipes", formatter_class=Formatter)
    actions = group.add_subparsers(title="actions", metavar="ACTION", required=True)
    push = add_verb(
        actions,
        "push",
        "catalogue:push",
        "send a directory of resolved recipes (*.yaml) to the service",
        "Needs a token, which is sent by https, or to this machine alone.\n"
        "Recipes that are not in DIR stay unless --replace is given.",
    )
    push.add_argument("directory", metavar="DIR", help="its *.yaml and *.yml files, at any depth")
    push.add_argument("--commit", metavar="SHA", required=True, help="the commit that the recipes were resolved at")
    push.add_argument("--ref", metavar="REF", default="", help="its branch or tag")
    push.add_argument("--replace", action="store_true", help="retire recipes that DIR does not hold")
    add_format(push)
    add_api(push)
    add_token(push, "AICR_EVIDENCE_CATALOGUE_TOKEN")


def _service(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    serve = add_verb(
        verbs,
        "serve",
        "start:run",
        "run the service",
        "An embedded SQLite database is migrated at start; a server database only by `aicr evidence migrate`.",
    )
    serve.add_argument("--host", metavar="ADDRESS", help="default: AICR_EVIDENCE_HOST")
    serve.add_argument(
        "--port", metavar="N", type=int, help="default: AICR_EVIDENCE_PORT; 0 takes a free one and prints it"
    )
    add_verb(verbs, "migrate", "serve:migrate", "bring the database to this release's schema")
    rebuild = add_verb(
        verbs, "rebuild", "serve:rebuild", "compute every projection anew from the signed bytes and the event table"
    )
    rebuild.add_argument(
        "--allow-missing", action="store_true", help="go on without acknowledged bundles that are gone from the archive"
    )
    settings = add_verb(
        verbs,
        "settings",
        "settings:run",
        "print every setting with its value, source and default",
        prints_answer=True,
    )
    trust = verbs.add_parser("trust", help="the trust roots in force", formatter_class=Formatter)
    trust_actions = trust.add_subparsers(title="actions", metavar="ACTION", required=True)
    show = add_verb(
        trust_actions,
        "show",
        "settings:trust",
        "print the roots in force, their logs and until when they hold",
        prints_answer=True,
    )
    show.add_argument(
        "--trusted-root", metavar="FILE", action="append", default=[], help="default: AICR_EVIDENCE_TRUSTED_ROOT"
    )
    for parser in (rebuild, settings, show):
        add_format(parser)
    sandbox = add_verb(
        verbs,
        "sandbox",
        "sandbox:run",
        "run a private Sigstore and an OCI registry on loopback, for trying things out",
        "Nothing in it is trusted by anybody else: its certificate authority, logs and registry live and die with it.",
    )
    sandbox.add_argument(
        "--directory",
        metavar="DIR",
        type=PurePath,
        default=PurePath("var/sandbox"),
        help="where trusted_root.json and signing_config.json are written (default: var/sandbox)",
    )
    sandbox.add_argument("--registry-port", metavar="N", type=port_number, default=0, help="0 takes a free one")
    sandbox.add_argument("--sigstore-port", metavar="N", type=port_number, default=0, help="0 takes a free one")
    sandbox.add_argument(
        "--no-referrers-api", action="store_true", help="the registry answers 404 for referrers, as old ones do"
    )
    demo = add_verb(verbs, "demo", "sandbox:demo", "sandbox, service, sample bundles and the verdict table, in one go")
    demo.add_argument(
        "--once", action="store_true", help="end after the table; exit 0 only if every verdict is the expected one"
    )
    demo.add_argument(
        "--leave-out",
        metavar="SAMPLE",
        action="append",
        default=[],
        help="do not submit this sample (the verdicts then differ)",
    )
    demo.add_argument("--port", metavar="N", type=port_number, default=0, help="the service's port; 0 takes a free one")
    demo.add_argument(
        "--directory",
        metavar="DIR",
        type=PurePath,
        default=PurePath("var/demo"),
        help="where the demo's files are made anew (default: var/demo)",
    )
    bench = add_verb(
        verbs,
        "bench",
        "bench:run",
        "measure ratios on this machine, in one run, in interleaved pairs",
        prints_answer=True,
    )
    bench.add_argument(
        "--size", choices=("small", "full"), default="small", help="how much is measured (default: small)"
    )
    bench.add_argument(
        "--only", metavar="NAME", action="append", default=[], help="only these measurements; repeatable"
    )
    bench.add_argument("--output", metavar="FILE", help="also write the figures as JSON there")
    add_format(bench)
