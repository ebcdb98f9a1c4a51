"""The compose file as a whole: its shape, its pins, its health checks, its networks, and no secret in it."""

import ipaddress
import json
import re
import tomllib
from urllib.parse import urlsplit

import jsonschema  # type: ignore[import-untyped]  # it has no types
import pytest

from tests.deployment import compose
from tests.deployment.compose_schema import SCHEMA
from tests.support.together import together

SERVICES = compose.services()
_SECRET_NAME = re.compile(r"PASSWORD|PWD|SECRET|KEY|TOKEN|DSN")
_HIGH_ENTROPY = re.compile(r"[A-Za-z0-9+/_-]{24,}")


def test_it_has_the_shape_that_compose_reads() -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(compose.raw())


def test_the_schema_refuses_a_misspelt_key() -> None:
    content = compose.raw()
    content["services"]["api"]["helthcheck"] = {}
    with pytest.raises(jsonschema.ValidationError, match="helthcheck"):
        jsonschema.Draft202012Validator(SCHEMA).validate(content)


@together("name", SERVICES)
def test_an_image_is_pinned_to_a_full_version(name: str) -> None:
    image, _, tag = compose.image(SERVICES[name]).rpartition(":")
    assert image
    assert re.match(r"\d+\.\d+(\.\d+)?(-\w+)?$", tag), f"{tag} moves"


def test_every_image_that_is_pulled_can_be_pinned() -> None:
    pulled = {name: service["image"] for name, service in SERVICES.items() if name not in compose.ours()}
    assert all(re.fullmatch(r"\$\{[A-Z_]+_IMAGE:-[^}]+\}", image) for image in pulled.values()), pulled
    # One variable an image: two of the same default would be pinned apart, two defaults of one would be a surprise.
    named = {image[2:-1].partition(":-")[::2] for image in pulled.values()}
    assert len({variable for variable, _ in named}) == len({image for _, image in named}) == len(named)


def test_the_bases_of_our_image_can_be_pinned() -> None:
    [build] = {json.dumps(service["build"]) for service in compose.ours().values()}
    arguments = json.loads(build)["args"]
    assert set(arguments) == {"PYTHON_IMAGE", "MYSQL_IMAGE", "POSTGRES_IMAGE"}
    for argument, value in arguments.items():
        default = value.removeprefix(f"${{{argument}:-").removesuffix("}")
        assert value == f"${{{argument}:-{default}}}"
        assert f"\nARG {argument}={default}\n" in (compose.ROOT / "Dockerfile").read_text()


def test_our_image_has_the_version_of_the_project() -> None:
    project = tomllib.loads((compose.ROOT / "pyproject.toml").read_text())["project"]
    assert {service["image"] for service in compose.ours().values()} == {f"headwater:{project['version']}"}


@together("name", SERVICES)
def test_a_service_has_a_health_check_or_says_why_not(name: str) -> None:
    assert ("healthcheck" in SERVICES[name]) != bool(SERVICES[name].get("x-no-healthcheck"))


def test_what_ends_by_itself_is_restarted_only_when_it_fails() -> None:
    assert compose.once() == {"migrate", "hosts", "temporal-schema", "temporal-namespace"}


@together("name", SERVICES)
def test_a_dependency_can_be_met(name: str) -> None:
    for other, wanted in SERVICES[name].get("depends_on", {}).items():
        if wanted["condition"] == "service_healthy":
            assert "healthcheck" in SERVICES[other]
        else:
            assert other in compose.once()
        assert set(SERVICES[name]["networks"]) & set(SERVICES[other]["networks"]), f"{name} can't reach {other}"


def test_the_api_starts_without_temporal() -> None:
    assert set(SERVICES["api"]["depends_on"]) == {"control-postgres", "migrate"}


def test_what_owns_our_tables_is_given_to_what_migrates_alone() -> None:
    password = "CONTROL_POSTGRES_PASSWORD"
    having = {name for name, one in SERVICES.items() if password in json.dumps(one)}
    assert having == {"migrate", "control-postgres"}


def test_volumes_and_networks_are_declared_and_used() -> None:
    mounted = [source for service in SERVICES.values() for source in compose.mounts(service).values()]
    assert {source for source in mounted if not source.startswith("./")} == set(compose.raw()["volumes"])
    joined = {network for service in SERVICES.values() for network in service["networks"]}
    assert joined == set(compose.raw()["networks"])


@together("name", SERVICES)
def test_a_database_server_keeps_its_data_in_a_volume_of_its_own(name: str) -> None:
    # Since 18 the image's data lies in a folder named for the version, below this one.
    folders = {"postgres": "/var/lib/postgresql", "mysql": "/var/lib/mysql"}
    folder = folders.get(compose.image(SERVICES[name]).split(":")[0])
    if folder is not None:
        assert compose.mounts(SERVICES[name])[folder] == name


HOSTS = {"postgres-us-east-1", "mysql-us-east-1"}
_NEIGHBOURS = {
    "proxy": {"api", "temporal-ui"},
    "api": {"proxy", "hosts", "migrate", "temporal", "temporal-namespace", "control-postgres"}
    | {"worker-control", "worker-webhooks", "worker-us-east-1"}
    | HOSTS,
    "postgres-us-east-1": {"api", "worker-us-east-1", "hosts", "mysql-us-east-1"},
    "mysql-us-east-1": {"api", "worker-us-east-1", "hosts", "postgres-us-east-1"},
    "temporal-postgres": {"temporal", "temporal-schema"},
    "temporal-schema": {"temporal", "temporal-postgres"},
    "temporal-ui": {"temporal", "proxy"},
}
"""Whom a service meets on any of its networks."""


def _neighbours(name: str) -> set[str]:
    joined = set(SERVICES[name]["networks"])
    return {other for other, one in SERVICES.items() if joined & set(one["networks"])} - {name}


@together("name", _NEIGHBOURS)
def test_a_service_shares_networks_with_what_it_needs_alone(name: str) -> None:
    assert _neighbours(name) == _NEIGHBOURS[name]


def test_nothing_that_need_not_reaches_the_engine_hosts() -> None:
    assert {name for name in SERVICES if _neighbours(name) & HOSTS} - HOSTS == {"api", "worker-us-east-1", "hosts"}
    assert {name for name in SERVICES if "temporal-postgres" in _neighbours(name)} == {"temporal", "temporal-schema"}


BACKUPS = {"worker-us-east-1", "hosts"}
"""Who reaches the store of backups, on S3 or in a volume."""


def test_who_reaches_the_store_of_backups() -> None:
    for name, one in SERVICES.items():
        assert ("HEADWATER_BACKUP_STORE" in one.get("environment", {})) == (name in BACKUPS)
        assert ("/backups" in compose.mounts(one)) == (name in BACKUPS)


def test_who_knows_of_object_lock() -> None:
    """Those who write to the store, and the API, which refuses to delete what is kept there."""
    knows = {name for name, one in SERVICES.items() if "HEADWATER_BACKUP_OBJECT_LOCK" in one.get("environment", {})}
    assert knows == BACKUPS | {"api"}


def test_only_what_publishes_or_sends_reaches_the_outside() -> None:
    outside = {name for name, network in compose.raw()["networks"].items() if not (network or {}).get("internal")}
    assert outside == {"public", "edge", "outgoing"}
    reach = {name for name, one in SERVICES.items() if outside & set(one["networks"])}
    published = {name for name, one in SERVICES.items() if "ports" in one}
    assert reach == published | {"api", "worker-webhooks"} | BACKUPS
    assert published == {"proxy"} | HOSTS


def test_what_shows_temporal_changes_nothing() -> None:
    assert SERVICES["temporal-ui"]["environment"]["TEMPORAL_DISABLE_WRITE_ACTIONS"] == "true"


def test_what_asks_for_no_password_listens_to_this_machine_alone() -> None:
    assert [port for port in SERVICES["proxy"]["ports"] if "8233" in port] == ["127.0.0.1:8233:8233"]


def test_only_the_proxy_is_between_the_api_and_its_clients() -> None:
    """Whoever shares that network is believed which address a request comes from."""
    assert {name for name, one in SERVICES.items() if "proxy" in one["networks"]} == {"proxy", "api"}
    subnet = compose.raw()["networks"]["proxy"]["ipam"]["config"][0]["subnet"]
    assert SERVICES["api"]["environment"]["HEADWATER_TRUSTED_PROXIES"] == subnet
    assert ipaddress.ip_network(compose.interpolated(subnet, {})).is_private


@together("name", [*compose.ours(), "proxy"])
def test_our_containers_can_change_nothing_and_gain_nothing(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


@together("name", SERVICES)
def test_no_secret_stands_in_the_file(name: str) -> None:
    for variable, value in SERVICES[name].get("environment", {}).items():
        rest = compose.without_variables(value)
        if variable.endswith("_DSN"):
            assert not urlsplit(rest).password
            assert "${" in urlsplit(value).netloc.split(":", 1)[1]
        elif _SECRET_NAME.search(variable):
            assert rest == "", f"{variable} has a value of its own"
    for argument in compose.command(SERVICES[name]):
        assert "password=" not in argument.lower()


def test_nothing_in_the_file_looks_like_a_secret() -> None:
    text = (compose.ROOT / "docker-compose.yml").read_text()
    for word in _HIGH_ENTROPY.findall(compose.without_variables(text)):
        assert not (re.search(r"[0-9]", word) and re.search(r"[a-z]", word) and re.search(r"[A-Z]", word)), word


def test_what_must_be_given_is_what_the_example_names() -> None:
    required = {name for name, rest in compose.variables().items() if rest.startswith("?")}
    # Without them, as in an .env of before, the servers make certificates of their own.
    required |= {"ENGINE_CA", "ENGINE_CERTIFICATE", "ENGINE_CERTIFICATE_KEY"}
    lines = (compose.ROOT / ".env.example").read_text().splitlines()
    assert {line.removesuffix("=") for line in lines if line and not line.startswith("#")} == required
    assert all(line.endswith("=") for line in lines if line and not line.startswith("#"))
    assert all(rest[0] in "?-" for rest in compose.variables().values())
