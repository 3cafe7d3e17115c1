"""Passes the golden JSON of the tests through a checkout of the Python SDK.

    npm run golden:python -w packages/sdk -- <folder of the checkout> [--write]

Needs Python 3.11 with pydantic and numpy. What the checkout imports for the network is not needed, and
stand-ins take its place; nothing of the checkout is kept.

Tells every case that this version reads or writes otherwise, and ends with 1 if there is one. With
--write the cases become what it writes, so that a case for a new message may be written by hand first.
"""

import importlib
import importlib.machinery
import json
import pkgutil
import sys
import types
from pathlib import Path

import pydantic

golden = Path(__file__).resolve().parent.parent / "test" / "fixtures" / "wire-json.json"


class StandIns:
    """Finds the modules of the network, which have whatever is asked of them."""

    names = {"anyio", "distro", "httpx", "httpx_aiohttp", "torch", "transformers"}

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in self.names:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return StandIn(spec.name)

    def exec_module(self, module):
        pass


class StandIn(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        members = {
            "__init__": lambda self, *args, **kwargs: None,
            "__class_getitem__": classmethod(lambda cls, item: cls),
        }
        return type(name, (), members)


def load_messages(checkout: Path) -> dict[str, type[pydantic.BaseModel]]:
    """Every model of the package `tinker.types`, by its name; the rest of the SDK is not run."""
    sys.meta_path.append(StandIns())
    package = types.ModuleType("tinker")
    package.__path__ = [str(checkout / "src" / "tinker")]
    sys.modules["tinker"] = package
    root = importlib.import_module("tinker.types")
    inside = pkgutil.walk_packages(root.__path__, "tinker.types.")
    modules = [root, *(importlib.import_module(found.name) for found in inside)]
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, pydantic.BaseModel)
    }


def outcome(message: type[pydantic.BaseModel] | None, wire: object) -> dict:
    """What the SDK makes of a message: what it writes after reading it, or why it refuses it."""
    if message is None:
        return {"refused": "there is no such message"}
    try:
        value = message.model_validate(wire)
    except pydantic.ValidationError as error:
        return {"refused": error.errors()[0]["msg"]}
    return {"written": value.model_dump(mode="json", exclude_none=True)}


def main(checkout: str, *options: str) -> int:
    messages = load_messages(Path(checkout))
    cases = json.loads(golden.read_text())
    different = 0
    for case in cases:
        now = outcome(messages.get(case["type"]), case["wire"])
        field = {"roundtrip": "wire", "defaults": "full"}.get(case["kind"])
        if "refused" in now if field is None else now.get("written") == case[field]:
            continue
        different += 1
        print(case["kind"], case["type"], json.dumps(case["wire"]), "->", json.dumps(now))
        if field is not None and "written" in now:
            case[field] = now["written"]
    print(f"{len(cases)} cases, {different} different")
    if "--write" in options:
        golden.write_text(json.dumps(cases, ensure_ascii=False, indent=0) + "\n")
        return 0
    return 1 if different else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
