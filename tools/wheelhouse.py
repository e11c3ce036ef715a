"""Wheels for a GPU machine with no network.

Such a machine has the packages that `[tool.wheelhouse] present` in pyproject.toml names. The rest
of what the notebooks and tests need is carried there as wheels, in the lock's versions.

    python tools/wheelhouse.py fetch WHEELHOUSE    with a network: download what is missing, check
    python tools/wheelhouse.py install WHEELHOUSE SITE    on that machine: unpack, check

`fetch` proves that nothing is missing: each requirement of each wheel is in the wheelhouse or among
the packages named as present. `install` checks the versions too, against what is really there.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable, Mapping
from email.parser import HeaderParser
from pathlib import Path

from packaging.requirements import Requirement
from packaging.tags import compatible_tags, cpython_tags
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
LIMIT_MB = 45
# pip takes these literally, so every glibc that wheels are named after is named.
GLIBC = ("2_28", "2_27", "2_24", "2_17", "2_12", "2_5")


class WheelhouseError(ValueError):
    """The wheelhouse cannot serve: the message says which package and why."""


def read_lock(path: Path) -> dict[str, str]:
    """Return {canonical name: version} of the lock file at `path`."""
    pins = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            requirement = Requirement(line)
            pins[canonicalize_name(requirement.name)] = str(requirement.specifier).removeprefix(
                "=="
            )
    return pins


def target_environment(python: str) -> dict[str, str]:
    """Return the marker environment of CPython `python` ("3.12") on 64-bit x86 Linux."""
    return {
        "implementation_name": "cpython",
        "implementation_version": f"{python}.0",
        "os_name": "posix",
        "platform_machine": "x86_64",
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": f"{python}.0",
        "python_version": python,
        "sys_platform": "linux",
    }


def requirements_of(wheel: Path) -> list[str]:
    """Return the Requires-Dist lines of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", n))
        headers = HeaderParser().parsestr(archive.read(name).decode("utf-8"))
    return headers.get_all("Requires-Dist") or []


def problems(
    needs: Mapping[str, Iterable[str]],
    available: Mapping[str, str | None],
    environment: Mapping[str, str],
) -> list[str]:
    """Return one line for each need that `available` does not meet.

    needs: {package: its Requires-Dist lines}; available: {canonical name: version, or None where
    only the name is known}; environment: markers of the machine that will run it.
    """
    found = []
    for package, lines in needs.items():
        for line in lines:
            requirement = Requirement(line)
            markers = {**environment, "extra": ""}
            if requirement.marker and not requirement.marker.evaluate(markers):
                continue
            name = canonicalize_name(requirement.name)
            if requirement.extras:
                found.append(f"{package} needs {line}: extras are not looked into")
            elif name not in available:
                found.append(f"{package} needs {line}: not there")
            elif (version := available[name]) is not None and not requirement.specifier.contains(
                version, prereleases=True
            ):
                found.append(f"{package} needs {line}: {version} is there")
    return found


def wheels_in(wheelhouse: Path) -> dict[str, tuple[str, Path]]:
    """Return {canonical name: (version, wheel)}; two wheels of one package are an error."""
    wheels: dict[str, tuple[str, Path]] = {}
    for path in sorted(wheelhouse.glob("*.whl")):
        name, version, _, _ = parse_wheel_filename(path.name)
        if name in wheels:
            raise WheelhouseError(f"two wheels of {name}: {wheels[name][1].name} and {path.name}")
        wheels[name] = (str(version), path)
    return wheels


def check(wheelhouse: Path, present: Iterable[str], python: str) -> str:
    """Return a one-line account of a complete wheelhouse; raise WheelhouseError for any other."""
    wheels = wheels_in(wheelhouse)
    if not wheels:
        raise WheelhouseError(f"no wheel in {wheelhouse}/: run `make wheelhouse` with a network")
    available: dict[str, str | None] = {canonicalize_name(name): None for name in present}
    available.update((name, version) for name, (version, _) in wheels.items())
    needs = {name: requirements_of(path) for name, (_, path) in wheels.items()}
    if found := problems(needs, available, target_environment(python)):
        raise WheelhouseError("the wheelhouse is incomplete:\n  " + "\n  ".join(found))
    size_mb = sum(path.stat().st_size for _, path in wheels.values()) / 1e6
    if size_mb > LIMIT_MB:
        raise WheelhouseError(f"the wheelhouse has {size_mb:.1f} MB, more than {LIMIT_MB} MB")
    return f"{wheelhouse}/: {len(wheels)} wheels, {size_mb:.1f} MB, complete for Python {python}"


def fetch(wheelhouse: Path, carried: Iterable[str], lock: Mapping[str, str], python: str) -> None:
    """Make `wheelhouse` hold exactly the wheels of `carried`, in the lock's versions."""
    pins = {}
    for name in map(canonicalize_name, carried):
        if name not in lock:
            raise WheelhouseError(f"{name} is to be carried and has no line in requirements.lock")
        pins[name] = lock[name]
    wheelhouse.mkdir(parents=True, exist_ok=True)
    number = tuple(int(part) for part in python.split("."))
    platforms = [f"manylinux_{glibc}_x86_64" for glibc in GLIBC]
    platforms += [f"manylinux{year}_x86_64" for year in ("2014", "2010", "1")]
    usable = {*cpython_tags(number, platforms=platforms)}
    usable |= {*compatible_tags(number, "cp" + python.replace(".", ""), platforms)}
    have = set()
    for path in sorted(wheelhouse.glob("*.whl")):
        name, version, _, tags = parse_wheel_filename(path.name)
        wanted = name in pins and name not in have and version == Version(pins[name])
        if wanted and tags & usable:
            have.add(name)
        else:
            path.unlink()
    missing = [f"{name}=={version}" for name, version in pins.items() if name not in have]
    if not missing:
        return
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary=:all:", "--implementation=cp", f"--python-version={python}"]
    command += [f"--platform={platform}" for platform in platforms]
    command += ["--dest", str(wheelhouse), *missing]
    if code := subprocess.run(command).returncode:
        raise WheelhouseError(f"pip download ended with status {code}")


def install(wheelhouse: Path, site: Path) -> str:
    """Unpack the wheels into `site`, with a kernel for Jupyter; check them against this machine.

    Uses no network and no virtual environment. `site` appears only when everything is in order.
    """
    wheels = wheels_in(wheelhouse)
    if not wheels:
        raise WheelhouseError(f"no wheel in {wheelhouse}/: run `make wheelhouse` with a network")
    made = site.with_name(site.name + ".tmp")
    shutil.rmtree(made, ignore_errors=True)
    try:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
        pip += ["--no-compile", "--no-cache-dir", "--target", str(made)]
        subprocess.run([*pip, *(str(path) for _, path in wheels.values())], check=True)
        if found := problems_of_site(made):
            raise WheelhouseError(
                "this machine lacks what the wheels need:\n  " + "\n  ".join(found)
            )
        path = os.pathsep.join(filter(None, [str(made.resolve()), os.environ.get("PYTHONPATH")]))
        (made / "share" / "ipython").mkdir(parents=True, exist_ok=True)
        kernel = [sys.executable, "-m", "ipykernel", "install", "--prefix", str(made)]
        subprocess.run(
            [*kernel, "--name", "python3"],
            check=True,
            stdout=subprocess.DEVNULL,
            env={
                **os.environ,
                "PYTHONPATH": path,
                "JUPYTER_PATH": str(made.resolve() / "share" / "jupyter"),
                "IPYTHONDIR": str(made.resolve() / "share" / "ipython"),
            },
        )
        shutil.rmtree(site, ignore_errors=True)
        os.replace(made, site)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return f"{site}/: {len(wheels)} packages for {sys.executable}"


def problems_of_site(site: Path) -> list[str]:
    """Return what the packages in `site` lack when it goes in front of this Python's own."""
    available: dict[str, str | None] = {}
    for distribution in importlib.metadata.distributions(path=[str(site), *sys.path]):
        available.setdefault(canonicalize_name(distribution.name), distribution.version)
    needs = {
        distribution.name: distribution.requires or []
        for distribution in importlib.metadata.distributions(path=[str(site)])
    }
    running = target_environment(f"{sys.version_info.major}.{sys.version_info.minor}")
    return problems(needs, available, running)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = argparse.ArgumentParser(description="Wheels for a GPU machine with no network.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("fetch", "install"):
        command = commands.add_parser(name)
        command.add_argument("wheelhouse", type=Path)
        if name == "install":
            command.add_argument("site", type=Path)
    options = parser.parse_args(arguments)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    settings = settings["tool"]["wheelhouse"]
    python = os.environ.get("WHEELHOUSE_PYTHON", settings["python"])
    try:
        if options.command == "install":
            print(install(options.wheelhouse, options.site))
        else:
            lock = read_lock(ROOT / "requirements.lock")
            fetch(options.wheelhouse, settings["carried"], lock, python)
            print(check(options.wheelhouse, settings["present"], python))
    except (WheelhouseError, subprocess.CalledProcessError) as error:
        print(f"wheelhouse: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
