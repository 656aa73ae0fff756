// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "shopping",
    dependencies: [.package(name: "Trebuchet", path: "../Trebuchet")],
    targets: [
        .executableTarget(name: "shopping", dependencies: [.product(name: "Trebuchet", package: "Trebuchet")])
    ]
)
