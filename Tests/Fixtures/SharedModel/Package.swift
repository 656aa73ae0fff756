// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "shared-model",
    dependencies: [.package(name: "Trebuchet", path: "../../..")],
    targets: [
        .target(
            name: "SharedModel", dependencies: [.product(name: "TrebuchetClient", package: "Trebuchet")])
    ]
)
