// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "game",
    dependencies: [.package(name: "Trebuchet", path: "../..")],
    targets: [
        .target(name: "GameModel", dependencies: [.product(name: "TrebuchetClient", package: "Trebuchet")]),
        .executableTarget(
            name: "GameServer", dependencies: ["GameModel", .product(name: "Trebuchet", package: "Trebuchet")]),
        .executableTarget(
            name: "GamePlayer", dependencies: ["GameModel", .product(name: "Trebuchet", package: "Trebuchet")]),
    ]
)
