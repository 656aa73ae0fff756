// swift-tools-version: 6.2
import CompilerPluginSupport
import Foundation
import PackageDescription

// The settings of every Swift target. `TREBUCHET_STRICT=1` (set by scripts/test) makes warnings errors.
let strict = ProcessInfo.processInfo.environment["TREBUCHET_STRICT"] == "1"
// `TREBUCHET_SANITIZE=thread`, for use with `--sanitize=thread`, gives the state modules a lock that ThreadSanitizer
// supports (Docs/Internals/Testing.md). Its members come from a module that the files with locks do not import by name.
let sanitizesThreads = ProcessInfo.processInfo.environment["TREBUCHET_SANITIZE"] == "thread"
let settings: [SwiftSetting] =
    [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        sanitizesThreads
            ? .define("TREBUCHET_THREAD_SANITIZER") : .enableUpcomingFeature("MemberImportVisibility"),
    ] + (strict ? [.treatAllWarnings(as: .error)] : [])

func library(
    _ name: String, in group: String, _ dependencies: [Target.Dependency] = [], _ more: [SwiftSetting] = []
) -> Target {
    .target(
        name: name, dependencies: dependencies, path: "Sources/\(group)/\(name)", swiftSettings: settings + more)
}

func test(
    _ name: String, in group: String, _ dependencies: [Target.Dependency], exclude: [String] = [],
    resources: [Resource]? = nil
) -> Target {
    .testTarget(
        name: name, dependencies: dependencies, path: "Tests/\(group)/\(name)", exclude: exclude, resources: resources,
        swiftSettings: settings)
}

// On systems other than Linux the package has only targets without the sockets of `Networking` (Docs/Reference/Platforms.md).
// TREBUCHET_PORTABLE=1 has the same effect here.
#if os(Linux)
    let isPortable = ProcessInfo.processInfo.environment["TREBUCHET_PORTABLE"] == "1"
#else
    let isPortable = true
#endif

// The macros build against the swift-syntax of the toolchain, so no package has to be fetched. A toolchain without it, such as
// that of Xcode, uses the package swift-syntax.
let host = toolchainHostLibraries()
let syntaxLibraries = [
    "SwiftBasicFormat", "SwiftCompilerPluginMessageHandling", "SwiftDiagnostics", "SwiftOperators", "SwiftParser",
    "SwiftParserDiagnostics", "SwiftSyntax", "SwiftSyntaxBuilder", "SwiftSyntaxMacroExpansion", "SwiftSyntaxMacros",
]
let syntaxSwiftSettings: [SwiftSetting] = host.map { [.unsafeFlags(["-I", $0])] } ?? []
let syntaxLinkerSettings: [LinkerSetting] =
    host.map { host in
        [.unsafeFlags(["-L", host] + syntaxLibraries.map { "-l" + $0 } + ["-Xlinker", "-rpath", "-Xlinker", host])]
    } ?? []

let package = Package(
    name: "Trebuchet",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "Trebuchet", targets: ["Trebuchet"]),
        .library(name: "TrebuchetClient", targets: ["TrebuchetClient"]),
        .library(name: "TrebuchetURLSession", targets: ["TrebuchetURLSession"]),
        .library(name: "WebSockets", targets: ["WebSockets"]),
        .library(name: "Relays", targets: ["Relays"]),
        .library(name: "QStream", targets: ["QStream"]),
        .library(name: "Loading", targets: ["Loading"]),
        .library(name: "SharedState", targets: ["SharedState"]),
        .library(name: "StateMachines", targets: ["StateMachines"]),
        .library(name: "TrebuchetServices", targets: ["TrebuchetServices"]),
        .library(name: "TrebuchetServicesModel", targets: ["TrebuchetServicesModel"]),
        .library(name: "TrebuchetServicesClient", targets: ["TrebuchetServicesClient"]),
        .library(name: "TrebuchetTelemetry", targets: ["TrebuchetTelemetry"]),
        .library(name: "TrebuchetInspector", targets: ["TrebuchetInspector"]),
        .library(name: "TrebuchetTokens", targets: ["TrebuchetTokens"]),
        .library(name: "TrebuchetStore", targets: ["TrebuchetStore"]),
        .library(name: "TrebuchetCluster", targets: ["TrebuchetCluster"]),
        .library(name: "TrebuchetNodes", targets: ["TrebuchetNodes"]),
        .library(name: "TrebuchetRedis", targets: ["TrebuchetRedis"]),
        .library(name: "TrebuchetTesting", targets: ["TrebuchetTesting"]),
        .executable(name: "trebuchet", targets: ["TrebuchetTool"]),
        .executable(name: "trebuchet-generate", targets: ["GenerateTool"]),
        // Declared again under the name of its target, because SwiftPM builds it for the plugin under that name.
        .executable(name: "GenerateTool", targets: ["GenerateTool"]),
        .plugin(name: "GenerateClient", targets: ["GenerateClient"]),
    ],
    targets: [
        // The layers are those of Docs/Internals/Architecture.md. Below them: system headers, and files that the compiler embeds.
        .systemLibrary(name: "CEpoll", path: "Sources/Base/CEpoll"),
        .systemLibrary(
            name: "COpenSSL", path: "Sources/Base/COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CZlib", path: "Sources/Base/CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(
            name: "CSQLite", path: "Sources/Base/CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(
            name: "CCurl", path: "Sources/Base/CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]
        ),
        // Files of Web, as constants.
        .target(name: "CWebFiles", path: "Sources/Server/CWebFiles"),
        .target(name: "CInspectorFiles", path: "Sources/Observability/CInspectorFiles"),
        // Layer 0: differences between operating systems, bytes, macros.
        library("Platform", in: "Base", ["CEpoll"]),
        library("Bytes", in: "Base"),
        library("IdentifiedArrays", in: "Base"),
        // Parsing of Swift sources, shared by the macros and the generator.
        .target(
            name: "SwiftReading", path: "Sources/Actors/SwiftReading", swiftSettings: settings + syntaxSwiftSettings,
            linkerSettings: syntaxLinkerSettings),
        .macro(
            name: "StateMachineMacros",
            path: "Sources/State/StateMachineMacros", swiftSettings: settings + syntaxSwiftSettings,
            linkerSettings: syntaxLinkerSettings),
        // Layer 1
        .macro(
            name: "TrebuchetMacros",
            dependencies: ["SwiftReading"],
            path: "Sources/Actors/TrebuchetMacros", swiftSettings: settings + syntaxSwiftSettings,
            linkerSettings: syntaxLinkerSettings),
        library("Relays", in: "State"),
        library("Transports", in: "Transport", ["Platform"]),
        library("TrebuchetCluster", in: "Cluster", ["Platform"]),
        library("TrebuchetWire", in: "Actors", ["Bytes", "Platform"]),
        // Layer 2
        library("Networking", in: "Transport", ["Bytes", "Platform", "Transports", "CEpoll", "COpenSSL"]),
        library("Deltas", in: "Actors", ["Bytes", "Platform", "TrebuchetWire"]),
        // Values and closures of a chain run on the actor of the sender by default.
        library("QStream", in: "State", ["Relays"], [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]),
        library("Loading", in: "State", ["Relays", "Platform"]),
        library("StateMachines", in: "State", ["Relays", "Platform", "IdentifiedArrays", "StateMachineMacros"]),
        library("SharedState", in: "State", ["Relays", "Platform", "IdentifiedArrays"]),
        // Layer 3
        // Requests to other servers and mails, by libcurl. Linked only by the products that use it.
        library("Transfers", in: "Transport", ["Bytes", "Platform", "Transports", "Networking", "CCurl"]),
        library("WebSockets", in: "Transport", ["Bytes", "Platform", "Transports", "Networking", "COpenSSL", "CZlib"]),
        // Actors and their streams, shared by server and client.
        library(
            "TrebuchetActors", in: "Actors",
            ["Bytes", "Platform", "Transports", "Relays", "TrebuchetWire", "Deltas", "TrebuchetMacros"]),
        // Layer 4
        library(
            "TrebuchetClient", in: "Client",
            ["TrebuchetActors", "Bytes", "Platform", "Transports", "Relays", "TrebuchetWire"]),
        // Keys, values, errors and limits of the services.
        library(
            "TrebuchetServicesModel", in: "Services",
            ["TrebuchetActors", "TrebuchetWire", "Deltas", "Bytes", "Platform"]),
        // Layer 5: the client of the services.
        library(
            "TrebuchetServicesClient", in: "Services",
            [
                "TrebuchetServicesModel", "TrebuchetClient", "TrebuchetActors", "Transports", "SharedState", "Relays",
                "TrebuchetWire", "Deltas", "Bytes", "Platform",
            ]),
        // Servers and socket transports; a transport over Foundation for systems without `Networking`.
        library("TrebuchetURLSession", in: "Client", ["TrebuchetClient", "Transports"]),
        library(
            "Trebuchet", in: "Server",
            [
                "CWebFiles",
                "TrebuchetActors", "TrebuchetClient", "Bytes", "Platform", "Transports", "Relays", "Networking",
                "WebSockets", "TrebuchetWire", "Deltas", "COpenSSL",
            ]),
        // Layer 6
        // Servers as nodes of a cluster: routing to other nodes, and logs in the coordination store.
        library(
            "TrebuchetNodes", in: "Cluster",
            [
                "Trebuchet", "TrebuchetCluster", "TrebuchetActors", "Bytes", "Platform", "Transports", "Relays",
                "Networking", "WebSockets", "TrebuchetWire",
            ]),
        library(
            "TrebuchetStore", in: "Server",
            [
                "Trebuchet", "TrebuchetActors", "TrebuchetClient", "TrebuchetCluster", "Transports", "Relays",
                "Platform",
                "CSQLite", "CZlib",
            ]),
        // The coordination store in Redis.
        library(
            "TrebuchetRedis", in: "Cluster",
            ["TrebuchetCluster", "Bytes", "Platform", "Transports", "Networking", "COpenSSL"]),
        // Export of spans to a collector.
        library(
            "TrebuchetTelemetry", in: "Observability",
            ["Trebuchet", "TrebuchetActors", "TrebuchetWire", "Transports", "Transfers", "Bytes"]),
        // Tokens of other services, verified with keys that are fetched.
        library(
            "TrebuchetTokens", in: "Server",
            ["Trebuchet", "Transfers", "Transports", "Bytes", "Platform"]),
        // Beside the layers: support for tests and previews of apps.
        library(
            "TrebuchetTesting", in: "Testing",
            [
                "Trebuchet", "TrebuchetActors", "TrebuchetClient", "Transports", "Networking", "Platform", "Bytes",
                "COpenSSL",
            ]),
        // Layer 7
        // Services of a backend as actors: sign-in, rooms, topics, collections.
        library(
            "TrebuchetServices", in: "Services",
            [
                "TrebuchetServicesModel", "TrebuchetServicesClient", "Trebuchet", "TrebuchetActors", "TrebuchetClient",
                "TrebuchetCluster", "Transports", "SharedState", "Relays", "Transfers", "TrebuchetTokens",
                "TrebuchetWire", "Bytes", "Platform", "CEpoll",
            ]),
        // The developer inspector of a server.
        library(
            "TrebuchetInspector", in: "Observability",
            [
                "Trebuchet", "TrebuchetNodes", "TrebuchetActors", "TrebuchetClient", "TrebuchetWire", "WebSockets",
                "Networking", "Transports", "Bytes", "Platform", "CInspectorFiles",
            ]),
        // Layer 8: the parts of commands.
        library(
            "Commands", in: "Tools",
            ["Trebuchet", "TrebuchetActors", "TrebuchetClient", "Transports", "TrebuchetServices", "Platform"]),
        // Layer 9: benchmark commands.
        .target(
            name: "Benchmarks",
            dependencies: [
                "Commands", "Trebuchet", "TrebuchetActors", "TrebuchetClient", "Transports", "TrebuchetServices",
                "TrebuchetStore", "TrebuchetCluster", "TrebuchetRedis", "StateMachines", "QStream",
                "WebSockets", "Networking", "TrebuchetWire", "Deltas", "Relays", "Bytes", "Platform", "CEpoll",
                "CSQLite", "CBareFanout",
            ],
            path: "Benchmarks", exclude: ["README.md", "CBareFanout"], swiftSettings: settings),
        // Layer 10: all commands. They are separate from the executable, because a test that imports an executable may be compiled
        // before it.
        library(
            "TrebuchetCLI", in: "Tools",
            [
                "Commands", "Benchmarks", "Trebuchet", "TrebuchetActors", "TrebuchetClient", "Transports",
                "TrebuchetServices", "TrebuchetStore", "TrebuchetCluster", "TrebuchetNodes", "TrebuchetRedis",
                "SharedState", "WebSockets", "Transfers", "TrebuchetTokens", "TrebuchetTelemetry", "TrebuchetInspector",
                "Networking", "TrebuchetWire", "Bytes", "Platform", "CEpoll",
            ]),
        // Layer 11
        .executableTarget(
            name: "TrebuchetTool", dependencies: ["TrebuchetCLI"], path: "Sources/Tools/TrebuchetTool",
            swiftSettings: settings),
        // Beside the layers: generated clients for other languages. A separate executable, because it needs the swift-syntax of a
        // toolchain and a server does not.
        .target(
            name: "ClientGenerator", dependencies: ["SwiftReading"], path: "Sources/Tools/ClientGenerator",
            swiftSettings: settings + syntaxSwiftSettings,
            linkerSettings: syntaxLinkerSettings),
        .executableTarget(
            name: "GenerateTool", dependencies: ["ClientGenerator"], path: "Sources/Tools/GenerateTool",
            swiftSettings: settings + syntaxSwiftSettings),
        .plugin(
            name: "GenerateClient",
            capability: .command(
                intent: .custom(
                    verb: "generate-client",
                    description: "Writes a TypeScript client of the package's distributed actors"),
                permissions: [.writeToPackageDirectory(reason: "It writes the client's source into the package.")]),
            dependencies: ["GenerateTool"]),

        test("BytesTests", in: "Base", ["Bytes"]),
        test("IdentifiedArraysTests", in: "Base", ["IdentifiedArrays"]),
        test(
            "TransfersTests", in: "Transport",
            ["Transfers", "Networking", "Transports", "Bytes", "TestCertificates", "TestSupport"]),
        test(
            "TrebuchetClusterTests", in: "Cluster",
            ["TrebuchetCluster", "Platform", "DocumentedDefaults", "TestSupport"]),
        test(
            "TrebuchetRedisTests", in: "Cluster",
            [
                "TrebuchetRedis", "TrebuchetCluster", "TrebuchetNodes", "TrebuchetStore", "Trebuchet",
                "TrebuchetActors", "Networking",
                "Transports", "Bytes", "Platform", "TestCertificates", "DocumentedDefaults", "TestSupport",
            ]),
        test(
            "ServerNodesTests", in: "Cluster",
            [
                "Trebuchet", "TrebuchetNodes", "TrebuchetActors", "TrebuchetClient", "TrebuchetCluster", "Transports",
                "TrebuchetTesting", "Platform", "TestSupport", "NodeSupport", "WebSockets", "Networking", "Deltas",
                "ServicesPython",
            ]),
        test(
            "ServicesNodesTests", in: "Services",
            [
                "TrebuchetServices", "TrebuchetServicesModel", "TrebuchetServicesClient", "Trebuchet",
                "TrebuchetActors", "TrebuchetClient", "TrebuchetCluster", "TrebuchetNodes", "Transports", "SharedState",
                "Platform", "TestSupport", "NodeSupport",
            ]),
        test("RelaysTests", in: "State", ["Relays", "Platform", "TestSupport"]),
        test("QStreamTests", in: "State", ["QStream", "Relays", "Platform", "TestSupport"]),
        test(
            "NetworkingTests", in: "Transport",
            ["Networking", "Transports", "Bytes", "Platform", "COpenSSL", "TestCertificates", "TestSupport"]),
        test(
            "WebSocketsTests", in: "Transport",
            [
                "WebSockets", "Transports", "Networking", "Bytes", "Platform", "TestCertificates", "DocumentedDefaults",
                "TestSupport",
            ]),
        test("TrebuchetWireTests", in: "Actors", ["TrebuchetWire", "Bytes", "Platform"]),
        // Types with and without code generated by a macro.
        test("WireTests", in: "Actors", ["TrebuchetActors", "TrebuchetWire", "Bytes"]),
        test("DeltasTests", in: "Actors", ["Deltas", "TrebuchetWire", "Bytes", "Platform"]),
        test("SharedStateTests", in: "State", ["SharedState", "Relays", "TestSupport"]),
        test("LoadingTests", in: "State", ["Loading", "Relays", "Platform", "TestSupport"]),
        // If a test depended on a macro, SwiftPM would build all tests and their dependencies for the host again. So these tests
        // contain the sources of the macros, through the link `Macros`.
        .testTarget(
            name: "TrebuchetMacrosTests",
            dependencies: ["SwiftReading"],
            path: "Tests/Actors/TrebuchetMacrosTests",
            exclude: ["Macros/Plugin.swift"],
            swiftSettings: settings + syntaxSwiftSettings,
            linkerSettings: syntaxLinkerSettings),
        .testTarget(
            name: "StateMachineMacrosTests",
            path: "Tests/State/StateMachineMacrosTests",
            exclude: ["Macros/Plugin.swift"],
            swiftSettings: settings + syntaxSwiftSettings,
            linkerSettings: syntaxLinkerSettings),
        .testTarget(
            name: "ClientGeneratorTests",
            dependencies: [
                "ClientGenerator", "GenerateTool", "TrebuchetTool", "Trebuchet", "TrebuchetActors", "TrebuchetClient",
                "Transports", "TrebuchetWire", "SharedState",
                "Bytes", "TestSupport",
            ],
            path: "Tests/Tools/ClientGeneratorTests",
            swiftSettings: settings + syntaxSwiftSettings,
            linkerSettings: syntaxLinkerSettings),
        test("StateMachinesTests", in: "State", ["StateMachines", "Relays", "Platform", "TestSupport"]),
        test(
            "TrebuchetTests", in: "Server",
            [
                "Trebuchet", "TrebuchetActors", "TrebuchetClient", "Transports", "TrebuchetTesting", "TrebuchetWire",
                "WebSockets", "Networking", "Bytes", "Relays",
                "Platform", "DocumentedDefaults", "TestSupport",
            ],
            // Compiled by a test against the stub of SwiftUI in the same folder.
            exclude: ["SwiftUI"]),
        test(
            "TrebuchetTokensTests", in: "Server",
            ["TrebuchetTokens", "Trebuchet", "TrebuchetActors", "TrebuchetClient", "TrebuchetTesting", "TestSupport"]),
        // Observability: events, metrics, the log, the admin endpoint.
        test(
            "ObservabilityTests", in: "Observability",
            [
                "Trebuchet", "TrebuchetActors", "TrebuchetClient", "Transports", "TrebuchetTesting", "Networking",
                "WebSockets", "Bytes", "Platform", "TestCertificates", "TestSupport", "TrebuchetTelemetry",
                "TrebuchetInspector", "TrebuchetNodes",
            ]),
        // Streaming: envelopes, sequence numbers, the client's registry, delivery, duplicates.
        test(
            "StreamingTests", in: "Server",
            [
                "Trebuchet", "TrebuchetActors", "TrebuchetClient", "Transports", "TrebuchetTesting", "TrebuchetWire",
                "WebSockets", "Networking", "Bytes", "Relays",
                "Platform", "TestSupport",
            ]),
        test(
            "TrebuchetStoreTests", in: "Server",
            [
                "TrebuchetStore", "Trebuchet", "TrebuchetActors", "TrebuchetClient", "TrebuchetCluster",
                "TrebuchetNodes", "Transports", "CSQLite", "DocumentedDefaults", "TestSupport", "Platform", "PowerCuts",
                "PowerCut", "TrebuchetTesting",
                "TrebuchetServices", "SharedState", "ChimeServer",
            ]),
        test(
            "TrebuchetServicesTests", in: "Services",
            [
                "TrebuchetServices", "TrebuchetServicesModel", "TrebuchetServicesClient", "Trebuchet",
                "TrebuchetActors", "TrebuchetClient", "TrebuchetCluster", "TrebuchetNodes", "Transports",
                "TrebuchetTesting", "SharedState", "Networking",
                "TrebuchetWire", "Deltas", "Bytes", "Relays", "DocumentedDefaults", "WebSockets",
                "TestSupport", "Platform",
            ]),
        // Sign-in at servers that are nodes of one cluster.
        test(
            "SignInNodesTests", in: "Services",
            [
                "TrebuchetServices", "Trebuchet", "TrebuchetActors", "TrebuchetClient", "TrebuchetCluster",
                "Transports",
                "TrebuchetTesting", "Relays", "Platform", "TestSupport",
            ]),
        // An app of the services for tests between processes, and the executable that runs it.
        .target(
            name: "ServicesClient",
            dependencies: [
                "Trebuchet", "TrebuchetActors", "TrebuchetClient", "Transports", "TrebuchetServices", "SharedState",
                "Platform",
            ],
            path: "Tests/Fixtures/ServicesClient", swiftSettings: settings),
        .executableTarget(
            name: "ServicesClientTool", dependencies: ["ServicesClient"], path: "Tools/ServicesClientTool",
            swiftSettings: settings),
        // A client of the services in Python, written from the protocol pages.
        .target(
            name: "ServicesPython", path: "Tests/Fixtures/ServicesPython", resources: [.copy("Scripts")],
            swiftSettings: settings),
        test(
            "TrebuchetCLITests", in: "Tools",
            [
                "TrebuchetCLI", "Commands", "Benchmarks", "Trebuchet", "TrebuchetActors", "TrebuchetClient",
                "Transports", "TrebuchetStore", "TrebuchetTesting", "TrebuchetServices", "Networking",
                "WebSockets", "ServicesClient", "ServicesClientTool", "TestCertificates", "Consistency", "TestSupport",
                "TrebuchetTool",
            ]),
        // The examples for the web, as their own packages declare them, so that tests can open them in a browser.
        .executableTarget(
            name: "TodosWeb", dependencies: ["Trebuchet", "TrebuchetStore"],
            path: "Examples/todos-web/Sources/TodosWeb", swiftSettings: [.swiftLanguageMode(.v6)]),
        .executableTarget(
            name: "ChatWeb", dependencies: ["Trebuchet", "TrebuchetStore"],
            path: "Examples/chat-web/Sources/ChatWeb", swiftSettings: [.swiftLanguageMode(.v6)]),
        test(
            "BrowserTests", in: "Tools", ["TrebuchetTool", "GenerateTool", "TodosWeb", "ChatWeb", "TestSupport"]),
        // Cluster nodes for tests of servers and services.
        .target(
            name: "NodeSupport",
            dependencies: ["Trebuchet", "TrebuchetCluster", "TrebuchetNodes", "Transports", "Platform", "TestSupport"],
            path: "Tests/Support/NodeSupport", swiftSettings: settings),
        // Support for tests of all modules.
        .target(
            name: "TestSupport", dependencies: ["Relays", "Platform"], path: "Tests/Support/TestSupport",
            swiftSettings: settings),
        // The other examples, so that tests can run them.
        .target(
            name: "TodoModel", dependencies: ["TrebuchetClient"], path: "Examples/todos/Sources/TodoModel",
            swiftSettings: [.swiftLanguageMode(.v6)]),
        .executableTarget(
            name: "TodoServer", dependencies: ["TodoModel", "Trebuchet", "TrebuchetStore"],
            path: "Examples/todos/Sources/TodoServer", swiftSettings: [.swiftLanguageMode(.v6)]),
        .executableTarget(
            name: "TodoClient", dependencies: ["TodoModel", "Trebuchet"], path: "Examples/todos/Sources/TodoClient",
            swiftSettings: [.swiftLanguageMode(.v6)]),
        .target(
            name: "GameModel", dependencies: ["TrebuchetClient"], path: "Examples/game/Sources/GameModel",
            swiftSettings: [.swiftLanguageMode(.v6)]),
        .executableTarget(
            name: "GameServer", dependencies: ["GameModel", "Trebuchet"], path: "Examples/game/Sources/GameServer",
            swiftSettings: [.swiftLanguageMode(.v6)]),
        .executableTarget(
            name: "GamePlayer", dependencies: ["GameModel", "Trebuchet"], path: "Examples/game/Sources/GamePlayer",
            swiftSettings: [.swiftLanguageMode(.v6)]),
        .executableTarget(
            name: "ObservedClient", dependencies: ["TodoModel", "Trebuchet"],
            path: "Examples/observed-client/Sources/ObservedClient", swiftSettings: [.swiftLanguageMode(.v6)]),
        .target(
            name: "KitchenModel", dependencies: ["TrebuchetClient"], path: "Examples/kitchen/Sources/KitchenModel",
            swiftSettings: [.swiftLanguageMode(.v6)]),
        .target(
            name: "Desk",
            dependencies: [
                "KitchenModel", "TrebuchetClient", "Relays", "QStream", "Loading", "SharedState", "StateMachines",
            ],
            path: "Examples/kitchen/Sources/Desk", swiftSettings: [.swiftLanguageMode(.v6)]),
        .executableTarget(
            name: "Kitchen", dependencies: ["Desk", "KitchenModel", "SharedState", "Trebuchet"],
            path: "Examples/kitchen/Sources/Kitchen", swiftSettings: [.swiftLanguageMode(.v6)]),
        test(
            "KitchenTests", in: "Project",
            [
                "Kitchen", "Desk", "KitchenModel", "Trebuchet", "TrebuchetClient", "TrebuchetTesting", "Relays",
                "QStream",
                "Loading", "SharedState", "StateMachines", "TestSupport",
            ]),
        test(
            "ExampleTests", in: "Project",
            [
                "TestSupport", "TrebuchetTesting", "TodoServer", "TodoClient", "GameServer", "GamePlayer",
                "ObservedClient",
            ]),
        // Output of the inspector's "Copy as test" for each example, with the settings of a user's package.
        .testTarget(
            name: "CopiedTests",
            dependencies: [
                "Trebuchet", "TrebuchetInspector", "TrebuchetTesting", "TrebuchetCLI", "TodoModel", "TodosWeb",
                "ChatWeb",
                "GameModel", "KitchenModel", "TestSupport",
            ],
            path: "Tests/Observability/CopiedTests",
            swiftSettings: [.swiftLanguageMode(.v6)]),
        // A model that server and client share, built against `TrebuchetClient` only; also a separate package.
        .target(
            name: "SharedModel", dependencies: ["TrebuchetClient"],
            path: "Tests/Fixtures/SharedModel/Sources/SharedModel",
            swiftSettings: settings),
        test(
            "TrebuchetURLSessionTests", in: "Client",
            [
                "TrebuchetURLSession", "TrebuchetClient", "Transports", "Networking", "WebSockets", "Trebuchet",
                "SharedModel",
                "TestSupport",
            ]),
        // A chat without the package's sockets, its view model and the test of it; also a separate package.
        .target(
            name: "PortableChat",
            dependencies: ["TrebuchetServicesClient", "TrebuchetClient", "TrebuchetURLSession", "SharedState"],
            path: "Tests/Fixtures/PortableChat/Sources/PortableChat", swiftSettings: settings),
        .testTarget(
            name: "PortableChatTests",
            dependencies: ["PortableChat", "TrebuchetServicesClient", "TrebuchetClient", "SharedState"],
            path: "Tests/Fixtures/PortableChat/Tests/PortableChatTests", swiftSettings: settings),
        test(
            "SharedModelTests", in: "Client",
            ["SharedModel", "TrebuchetClient", "Transports", "Trebuchet", "TestSupport"]),
        // Command-line options of the programs in Tools.
        .target(name: "ToolOptions", path: "Tools/ToolOptions", swiftSettings: settings),
        // Hostile clients and a judge of the server's reactions; scripts/stress torment runs it.
        .executableTarget(
            name: "Torment",
            dependencies: [
                "TrebuchetCLI", "Commands", "Benchmarks", "Trebuchet", "TrebuchetActors", "TrebuchetClient",
                "Transports", "TestCertificates", "Platform", "COpenSSL", "ToolOptions", "TestSupport",
            ],
            path: "Tools/Torment", resources: [.copy("foreign.py")], swiftSettings: settings),
        // Mutation testing of the sources; scripts/stress mutate runs it.
        .target(
            name: "Mutations", path: "Tools/Mutations", swiftSettings: settings + syntaxSwiftSettings,
            linkerSettings: syntaxLinkerSettings),
        .executableTarget(
            name: "Mutate", dependencies: ["Mutations", "ToolOptions"], path: "Tools/Mutate",
            swiftSettings: settings + syntaxSwiftSettings),
        .testTarget(
            name: "MutationsTests", dependencies: ["Mutations", "TestSupport"], path: "Tests/Tools/MutationsTests",
            swiftSettings: settings + syntaxSwiftSettings),
        // A model of a disk whose power fails, and a judge of the remaining store; scripts/stress power-cuts runs it.
        .target(name: "CPowerCut", dependencies: ["CSQLite"], path: "Tools/CPowerCut"),
        .target(
            name: "PowerCuts", dependencies: ["CPowerCut", "TrebuchetStore", "Trebuchet", "Platform"],
            path: "Tools/PowerCuts", swiftSettings: settings),
        .executableTarget(
            name: "PowerCut", dependencies: ["PowerCuts", "ToolOptions", "TrebuchetStore"], path: "Tools/PowerCut",
            swiftSettings: settings),
        // A judge of servers and clients under faults; scripts/stress consistency runs it.
        .executableTarget(
            name: "Consistency",
            dependencies: [
                "Trebuchet", "TrebuchetActors", "TrebuchetClient", "Transports", "TrebuchetServices", "SharedState",
                "TrebuchetStore", "TrebuchetTesting", "TrebuchetCluster", "TrebuchetNodes", "TrebuchetRedis",
                "Networking", "Benchmarks",
                "Platform", "ServicesPython", "ToolOptions", "TestSupport",
            ],
            path: "Tools/Consistency", swiftSettings: settings),
        .target(name: "CAllocationCount", path: "Tests/Support/CAllocationCount"),
        // The baseline of `bench fanout --bare`.
        .target(name: "CBareFanout", path: "Benchmarks/CBareFanout"),
        .target(
            name: "TestCertificates", path: "Tests/Fixtures/TestCertificates", resources: [.copy("Certificates")],
            swiftSettings: settings),
        // Compares the defaults of settings with their doc comments.
        .target(
            name: "DocumentedDefaults", dependencies: ["TestSupport"], path: "Tests/Support/DocumentedDefaults",
            swiftSettings: settings),
        // Actors of recorded exchanges, which contain the names of these modules.
        .target(name: "Interop", dependencies: ["Trebuchet"], path: "Tests/Fixtures/Interop", swiftSettings: settings),
        .target(
            name: "Interop2", dependencies: ["Trebuchet"], path: "Tests/Fixtures/Interop2", swiftSettings: settings),
        // A server with alarms in a store, which tests kill.
        .executableTarget(
            name: "ChimeServer", dependencies: ["Trebuchet", "TrebuchetStore"], path: "Tests/Fixtures/ChimeServer",
            swiftSettings: [.swiftLanguageMode(.v6)]),
        test(
            "IntegrationTests", in: "Server",
            [
                "Trebuchet", "TrebuchetActors", "TrebuchetClient", "Transports", "TrebuchetTesting", "TrebuchetWire",
                "WebSockets", "Networking", "Bytes", "Platform",
                "CAllocationCount", "Relays", "QStream", "Loading", "StateMachines", "TestCertificates", "Interop",
                "Interop2", "TestSupport",
            ],
            resources: [.copy("Exchanges")]),
        test(
            "ConformanceTests", in: "Transport",
            [
                "Trebuchet", "TrebuchetActors", "TrebuchetClient", "Transports", "TrebuchetServices", "WebSockets",
                "Networking", "TestCertificates", "ServicesPython",
                "TestSupport",
            ],
            resources: [.copy("Scripts")]),
        // Compiles and runs the code of the documentation, with the settings of a user's package.
        .testTarget(
            name: "DocumentationSnippetTests",
            dependencies: [
                "Trebuchet", "TrebuchetServices", "SharedState", "Loading", "QStream", "Relays", "StateMachines",
                "TrebuchetStore", "TrebuchetCluster", "TrebuchetNodes", "TrebuchetRedis", "TrebuchetTesting",
                "TrebuchetTelemetry", "TrebuchetInspector", "TrebuchetTokens", "TestSupport",
            ],
            path: "Tests/Project/DocumentationSnippetTests",
            swiftSettings: [.swiftLanguageMode(.v6)]),
        // The last steps of the tutorials, linked from the catalogs, with the settings of a user's package.
        .testTarget(
            name: "TutorialTests",
            dependencies: ["Trebuchet", "TrebuchetServices", "SharedState", "WebSockets", "TestSupport"],
            path: "Tests/Project/TutorialTests",
            swiftSettings: [.swiftLanguageMode(.v6)]),
        test("TidyTests", in: "Project", ["TestSupport"]),
    ]
)

// Built by scripts/stress fuzz only, because libFuzzer has its own `main`.
if ProcessInfo.processInfo.environment["TREBUCHET_FUZZ"] == "1" {
    package.targets.append(
        .executableTarget(
            name: "Fuzz", dependencies: ["WebSockets", "TrebuchetRedis", "TrebuchetWire", "Bytes"], path: "Tools/Fuzz",
            exclude: ["Corpus"],
            swiftSettings: settings + [.unsafeFlags(["-parse-as-library"])]))
}

// `TREBUCHET_TESTS=WebSocketsTests,NetworkingTests` reduces the package to these tests and their dependencies, for quick builds
// during development.
if let wanted = ProcessInfo.processInfo.environment["TREBUCHET_TESTS"]?.split(separator: ",").map(String.init) {
    let targets = Dictionary(uniqueKeysWithValues: package.targets.map { ($0.name, $0) })
    var kept: Set<String> = []
    var waiting = wanted
    while let name = waiting.popLast() {
        guard let target = targets[name], kept.insert(name).inserted else { continue }
        for case .byNameItem(let name, _) in target.dependencies { waiting.append(name) }
    }
    package.targets.removeAll { !kept.contains($0.name) }
    package.products.removeAll { _ in true }
}

// The targets without epoll and OpenSSL: a client, also of the services, and the state family.
var portable: Set<String> = [
    "Platform", "Bytes", "IdentifiedArrays", "SwiftReading", "TrebuchetMacros", "StateMachineMacros", "Relays",
    "Transports", "TrebuchetWire", "Deltas", "QStream", "Loading", "StateMachines", "SharedState", "TrebuchetActors",
    "TrebuchetClient", "TrebuchetURLSession", "TrebuchetServicesModel", "TrebuchetServicesClient", "SharedModel",
    "PortableChat", "PortableChatTests",
]
#if os(Linux)
    portable.insert("CEpoll")
#endif

if isPortable {
    package.products.removeAll { !portable.contains($0.name) }
    package.targets.removeAll { !portable.contains($0.name) }
    for target in package.targets {
        target.dependencies.removeAll {
            if case .byNameItem(let name, _) = $0 { !portable.contains(name) } else { false }
        }
    }
}

if host == nil {
    package.dependencies.append(
        .package(url: "https://github.com/swiftlang/swift-syntax.git", "602.0.0"..<"604.0.0"))
    for target in package.targets where usesSyntax(target) {
        target.dependencies += syntaxLibraries.map { library in
            // The package has a library product for this target under another name.
            let isPlugin = library == "SwiftCompilerPluginMessageHandling"
            return .product(name: isPlugin ? "_" + library : library, package: "swift-syntax")
        }
    }
}

func usesSyntax(_ target: Target) -> Bool {
    let users = ["SwiftReading", "TrebuchetMacros", "StateMachineMacros", "ClientGenerator", "GenerateTool"]
    let tests = [
        "TrebuchetMacrosTests", "StateMachineMacrosTests", "ClientGeneratorTests", "Mutations", "Mutate",
        "MutationsTests",
    ]
    return (users + tests).contains(target.name)
}

/// The folder with the swift-syntax of the running toolchain, found from `swiftc` on the `PATH`; nil if the toolchain has none,
/// and with TREBUCHET_SYNTAX=package.
func toolchainHostLibraries() -> String? {
    if ProcessInfo.processInfo.environment["TREBUCHET_SYNTAX"] == "package" { return nil }
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    for folder in path.split(separator: ":") {
        let compiler = URL(fileURLWithPath: String(folder)).appendingPathComponent("swiftc")
        guard FileManager.default.isExecutableFile(atPath: compiler.path) else { continue }
        let host = compiler.resolvingSymlinksInPath()
            .deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("lib/swift/host")
        let module = host.appendingPathComponent("SwiftSyntax.swiftmodule")
        if FileManager.default.fileExists(atPath: module.path) { return host.path }
    }
    return nil
}
