// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "kitchen",
    dependencies: [.package(name: "Trebuchet", path: "../..")],
    targets: [
        .target(name: "KitchenModel", dependencies: [.product(name: "TrebuchetClient", package: "Trebuchet")]),
        .target(
            name: "Desk",
            dependencies: [
                "KitchenModel", .product(name: "TrebuchetClient", package: "Trebuchet"),
                .product(name: "Relays", package: "Trebuchet"), .product(name: "QStream", package: "Trebuchet"),
                .product(name: "Loading", package: "Trebuchet"), .product(name: "SharedState", package: "Trebuchet"),
                .product(name: "StateMachines", package: "Trebuchet"),
            ]),
        .executableTarget(
            name: "Kitchen",
            dependencies: [
                "Desk", "KitchenModel", .product(name: "SharedState", package: "Trebuchet"),
                .product(name: "Trebuchet", package: "Trebuchet"),
            ]),
    ]
)
