// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "chat-web",
    dependencies: [.package(name: "Trebuchet", path: "../..")],
    targets: [
        .executableTarget(
            name: "ChatWeb",
            dependencies: [
                .product(name: "Trebuchet", package: "Trebuchet"),
                .product(name: "TrebuchetStore", package: "Trebuchet"),
            ])
    ]
)
