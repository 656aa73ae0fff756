// swift-tools-version: 6.2
import PackageDescription

// An app without the package's sockets: `TREBUCHET_PORTABLE=1 swift test` builds and tests it on Linux.
let products = ["SharedState", "TrebuchetClient", "TrebuchetServicesClient", "TrebuchetURLSession"]

let package = Package(
    name: "portable-chat",
    platforms: [.macOS(.v15), .iOS(.v18)],
    products: [.library(name: "PortableChat", targets: ["PortableChat"])],
    dependencies: [.package(name: "Trebuchet", path: "../../..")],
    targets: [
        .target(name: "PortableChat", dependencies: products.map { .product(name: $0, package: "Trebuchet") }),
        .testTarget(name: "PortableChatTests", dependencies: ["PortableChat"]),
    ]
)
