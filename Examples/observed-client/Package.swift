// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "observed-client",
    dependencies: [
        .package(name: "Trebuchet", path: "../.."),
        // The list is the one of the example `todos`.
        .package(path: "../todos"),
    ],
    targets: [
        .executableTarget(
            name: "ObservedClient",
            dependencies: [
                .product(name: "Trebuchet", package: "Trebuchet"), .product(name: "TodoModel", package: "todos"),
            ])
    ]
)
