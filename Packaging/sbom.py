"""The bill of materials of the executable, in SPDX 2.3: its files, the libraries it links, and the Swift runtime."""

import datetime
import hashlib
import json
import re
import uuid

SWIFT_LICENCE = "Apache-2.0 WITH Swift-exception"
# Licences of the parts of Debian's packages that are linked, as SPDX writes them.
LICENCES = {
    "libc6": "LGPL-2.1-or-later",
    "libssl3": "Apache-2.0", "libssl3t64": "Apache-2.0",
    "zlib1g": "Zlib",
    "libsqlite3-0": "blessing",
    "libcurl4": "curl", "libcurl4t64": "curl",
    "libgcc-s1": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libstdc++6": "GPL-3.0-or-later WITH GCC-exception-3.1",
}
# Libraries of the toolchain that have another licence than Swift's runtime.
TOOLCHAIN_LICENCES = {
    "lib_FoundationICU.so": "Unicode-3.0 AND " + SWIFT_LICENCE,
    "libBlocksRuntime.so": SWIFT_LICENCE + " AND (NCSA OR MIT)",
}


def identifier(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def package(name, version, licence, supplier, **fields):
    return {
        "SPDXID": identifier(f"Package-{name}"), "name": name, "versionInfo": version, "supplier": supplier,
        "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence,
        "copyrightText": "NOASSERTION", **fields,
    }


def purl(kind, name, version, qualifiers=""):
    return [{
        "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
        "referenceLocator": f"pkg:{kind}/{name}@{version.replace('+', '%2B').replace(':', '%3A').replace('~', '~')}{qualifiers}",
    }]


def document(version, epoch, executable, libraries, direct, swift, architecture, copyright):
    """Returns the document as text.

    - executable: its bytes, as packaged.
    - libraries: all libraries it loads (`libraries.Library`); `direct`: the names in its own list.
    - swift: the version of the Swift runtime, which is linked statically if none of the libraries is Swift's.
    """
    created = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    sha256 = hashlib.sha256(executable).hexdigest()
    own = package(
        "trebuchet", version, "MIT", "Organization: The Trebuchet authors", copyrightText=copyright, primaryPackagePurpose="APPLICATION",
        filesAnalyzed=True, hasFiles=["SPDXRef-File-trebuchet"], licenseInfoFromFiles=["MIT"],
        packageVerificationCode={
            "packageVerificationCodeValue": hashlib.sha1(hashlib.sha1(executable).hexdigest().encode()).hexdigest()})
    packages, relationships = [own], []

    def relate(source, kind, target):
        relationships.append({"spdxElementId": source, "relationshipType": kind, "relatedSpdxElement": target})

    relate("SPDXRef-DOCUMENT", "DESCRIBES", own["SPDXID"])
    relate(own["SPDXID"], "CONTAINS", "SPDXRef-File-trebuchet")
    bundled = sorted(library.name for library in libraries if library.package is None)
    runtime = package(
        "swift-runtime", swift, SWIFT_LICENCE, "Organization: Swift project", primaryPackagePurpose="LIBRARY",
        summary="The standard library, Foundation and Dispatch of the Swift toolchain: "
        + (", ".join(bundled) if bundled else "linked statically"))
    packages.append(runtime)
    relate(own["SPDXID"], "DYNAMIC_LINK" if bundled else "STATIC_LINK", runtime["SPDXID"])
    special = TOOLCHAIN_LICENCES if not bundled else {name: TOOLCHAIN_LICENCES[name] for name in bundled if name in TOOLCHAIN_LICENCES}
    for name, licence in sorted(special.items()):
        part = package(name.removeprefix("lib").removesuffix(".so"), swift, licence, "Organization: Swift project")
        packages.append(part)
        relate(runtime["SPDXID"], "CONTAINS", part["SPDXID"])
    names = {}
    for library in libraries:
        if library.package is not None and library.name in direct:
            names.setdefault((library.package, library.version), []).append(library.name)
    for (name, version_of_package), files in sorted(names.items()):
        part = package(
            name, version_of_package, LICENCES.get(name, "NOASSERTION"), "Organization: Debian",
            summary="shared libraries of the system: " + ", ".join(sorted(files)), primaryPackagePurpose="LIBRARY",
            externalRefs=purl("deb/debian", name, version_of_package, f"?arch={architecture}"))
        packages.append(part)
        relate(own["SPDXID"], "DYNAMIC_LINK", part["SPDXID"])
    result = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"trebuchet-{version}",
        # A name for this content, not an address.
        "documentNamespace": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, sha256 + json.dumps(packages, sort_keys=True))}",
        "creationInfo": {"created": created, "creators": ["Tool: trebuchet-scripts-package"]},
        "packages": packages,
        "files": [{
            "SPDXID": "SPDXRef-File-trebuchet", "fileName": "./bin/trebuchet", "fileTypes": ["BINARY"],
            "checksums": [
                {"algorithm": "SHA1", "checksumValue": hashlib.sha1(executable).hexdigest()},
                {"algorithm": "SHA256", "checksumValue": sha256},
            ],
            "licenseConcluded": "MIT", "licenseInfoInFiles": ["MIT"], "copyrightText": copyright,
        }],
        "relationships": relationships,
    }
    return json.dumps(result, indent=2, ensure_ascii=False) + "\n"
