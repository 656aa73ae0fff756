// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "todos-web",
    dependencies: [.package(name: "Trebuchet", path: "../..")],
    targets: [
        .executableTarget(
            name: "TodosWeb",
            dependencies: [
                .product(name: "Trebuchet", package: "Trebuchet"),
                .product(name: "TrebuchetStore", package: "Trebuchet"),
            ])
    ]
)
