"""What is wrong with deploy/: its manifests and its Containerfile, by parsing alone."""

import json
import re
import shlex
from pathlib import Path

from tools import ROOT

FOLDER = ROOT / "deploy"
# What a Containerfile may say, as its reference lists it.
INSTRUCTIONS = set("ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL ONBUILD RUN SHELL STOPSIGNAL USER VOLUME WORKDIR".split())


def instructions(text):
    """The instructions of a Containerfile: (line number, name, rest), with continued lines joined."""
    found, pending, began = [], "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        began = began if pending else number
        pending += line.strip()
        if pending.endswith("\\"):
            pending = pending[:-1] + " "
            continue
        name, _, rest = pending.partition(" ")
        found.append((began, name.upper(), rest.strip()))
        pending = ""
    if pending:
        found.append((began, pending.split()[0].upper(), "ends in the middle"))
    return found


def containerfile_faults(text, root=ROOT):
    """Everything wrong with a Containerfile, one sentence each."""
    found, stages, stage = [], set(), None
    last = {}
    for number, name, rest in instructions(text):

        def wrong(what, number=number):
            found.append(f"line {number}: {what}")

        if name not in INSTRUCTIONS:
            wrong(f"{name} is no instruction")
            continue
        if not rest or rest == "ends in the middle":
            wrong(f"{name} says nothing")
            continue
        if name == "FROM":
            match = re.fullmatch(r"(?:--platform=\S+ )?(\S+?)(?: AS ([a-z][\w.-]*))?", rest, re.IGNORECASE)
            if not match:
                wrong("FROM takes an image and `AS name`")
                continue
            image, stage = match[1], match[2]
            if image not in stages and ":" not in image and "@" not in image and image != "scratch":
                wrong(f"the image {image} has no tag")
            stages.add(stage)
            last = {}
        elif stage is None and not stages and name != "ARG":
            wrong(f"{name} before the first FROM")
        elif name in ("COPY", "ADD"):
            words = shlex.split(rest)
            options, paths = [word for word in words if word.startswith("--")], [word for word in words if not word.startswith("--")]
            origin = next((option.partition("=")[2] for option in options if option.startswith("--from=")), None)
            if len(paths) < 2:
                wrong(f"{name} takes a source and a destination")
            elif origin is not None and origin not in stages:
                wrong(f"there is no stage {origin}")
            elif origin is None and not all((root / path).exists() for path in paths[:-1]):
                wrong(f"{paths[:-1]} is not there")
        elif name in ("ENTRYPOINT", "CMD"):
            try:
                if not all(isinstance(word, str) for word in json.loads(rest)):
                    raise ValueError
            except ValueError:
                wrong(f"{name} is no list of texts; a shell would stand between")
        elif name == "EXPOSE" and not all(re.fullmatch(r"\d{1,5}(/tcp|/udp)?", port) for port in rest.split()):
            wrong("EXPOSE takes numbers")
        last[name] = rest
    user = last.get("USER", "").split(":")[0]
    if not user.isdigit() or user == "0":
        found.append("the image runs as root, or Kubernetes can't see that it doesn't: USER takes a number over 0")
    if "ENTRYPOINT" not in last:
        found.append("no ENTRYPOINT in the last stage")
    return found


def documents(folder=FOLDER):
    """Every document of the manifests: (file name, parsed)."""
    import yaml

    return [
        (path.name, document) for path in sorted((folder / "kubernetes").glob("*.yml")) for document in yaml.safe_load_all(path.read_text())
    ]


def manifest_faults(file, document):
    """What is wrong with one manifest, one sentence each."""
    import kubernetes_validate

    found = []
    if document["apiVersion"].startswith("monitoring.coreos.com/"):
        # The operator's own kind; Kubernetes' schemas do not have it.
        if document["kind"] != "PodMonitor" or not document["spec"]["podMetricsEndpoints"]:
            found.append("a PodMonitor names its endpoints")
    else:
        try:
            kubernetes_validate.validate(document, "1.29", strict=True)
        except kubernetes_validate.ValidationError as error:
            found.append(error.message)
    return [f"{file}: {fault}" for fault in found]


def set_faults(documents):
    """What does not fit between the manifests."""
    found = []
    kinds = {document["kind"]: document for _, document in documents}
    pod = kinds["Deployment"]["spec"]["template"]
    labels = pod["metadata"]["labels"].items()
    containers = pod["spec"]["initContainers"] + pod["spec"]["containers"]
    for kind, place in (("PodMonitor", "selector"), ("NetworkPolicy", "podSelector")):
        if not kinds[kind]["spec"][place]["matchLabels"].items() <= labels:
            found.append(f"{kind} selects no pod of the Deployment")
    ports = {port["name"]: port["containerPort"] for container in containers for port in container.get("ports", [])}
    for endpoint in kinds["PodMonitor"]["spec"]["podMetricsEndpoints"]:
        if endpoint["port"] not in ports:
            found.append(f"PodMonitor: there is no port {endpoint['port']}")
    let_in = {port["port"] for rule in kinds["NetworkPolicy"]["spec"]["ingress"] for port in rule["ports"]}
    if let_in != set(ports.values()):
        found.append("NetworkPolicy lets in other ports than there are")
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    for container in containers:
        security = container["securityContext"]
        if not security["runAsUser"] or not security["readOnlyRootFilesystem"] or security["allowPrivilegeEscalation"]:
            found.append(f"{container['name']}: runs with more rights than it needs")
        for mount in container["volumeMounts"]:
            if mount["name"] not in volumes:
                found.append(f"{container['name']}: there is no volume {mount['name']}")
    for volume in volumes.values():
        if volume.get("emptyDir", {}).get("medium") != "Memory" or not volume["emptyDir"].get("sizeLimit"):
            found.append(f"{volume['name']}: not in memory, or without a limit")
    sidecar = pod["spec"]["initContainers"][0]
    if sidecar.get("restartPolicy") != "Always":
        found.append("the sidecar is none: the engine would wait for its end")
    if f":{ports['telemetry']}" not in " ".join(sidecar["args"]):
        found.append("the sidecar listens at another port than it names")
    return found
