// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "todos",
    products: [.library(name: "TodoModel", targets: ["TodoModel"])],
    dependencies: [.package(name: "Trebuchet", path: "../..")],
    targets: [
        .target(name: "TodoModel", dependencies: [.product(name: "TrebuchetClient", package: "Trebuchet")]),
        .executableTarget(
            name: "TodoServer",
            dependencies: [
                "TodoModel", .product(name: "Trebuchet", package: "Trebuchet"),
                .product(name: "TrebuchetStore", package: "Trebuchet"),
            ]),
        .executableTarget(
            name: "TodoClient",
            dependencies: ["TodoModel", .product(name: "Trebuchet", package: "Trebuchet")]),
    ]
)
