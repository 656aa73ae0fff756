/// The layer of each module. A module may import only modules of lower layers.
///
/// A new module gets its layer here and in Docs/Internals/Architecture.md.
enum LayerRules {
    static let layers: [String: Int] = [
        "CEpoll": -1, "COpenSSL": -1, "CZlib": -1, "CSQLite": -1, "CCurl": -1,
        "CWebFiles": -1, "CInspectorFiles": -1,
        "Platform": 0, "Bytes": 0, "IdentifiedArrays": 0, "SwiftReading": 0, "TrebuchetMacros": 1,
        "StateMachineMacros": 0, "TestCertificates": 0, "Mutations": 0,
        "ToolOptions": 0, "ServicesPython": 0,
        "CAllocationCount": 0, "CPowerCut": 0, "CBareFanout": 0,
        "ClientGenerator": 1, "GenerateTool": 2, "GenerateClient": 3,
        "TestSupport": 2, "DocumentedDefaults": 3,
        "Relays": 1, "Transports": 1, "TrebuchetWire": 1, "TrebuchetCluster": 1,
        "Networking": 2, "Deltas": 2, "QStream": 2, "Loading": 2, "StateMachines": 2, "SharedState": 2,
        "WebSockets": 3, "Transfers": 3, "TrebuchetActors": 3,
        "TrebuchetClient": 4, "TrebuchetServicesModel": 4,
        "Trebuchet": 5, "TrebuchetURLSession": 5, "TrebuchetServicesClient": 5,
        "TrebuchetStore": 6, "TrebuchetRedis": 6, "TrebuchetTokens": 6, "TrebuchetTelemetry": 6,
        "TrebuchetNodes": 6, "TrebuchetServices": 7, "TrebuchetInspector": 7,
        "TrebuchetTesting": 6,
        "NodeSupport": 7,
        "Interop": 6, "Interop2": 6, "ChimeServer": 7,
        "Commands": 8, "ServicesClient": 8, "PowerCuts": 7,
        "Benchmarks": 9, "ServicesClientTool": 9, "Fuzz": 8, "Mutate": 8, "PowerCut": 8,
        "TodosWeb": 8, "ChatWeb": 8,
        "TodoModel": 5, "GameModel": 5, "SharedModel": 5, "PortableChat": 6, "TodoServer": 8, "TodoClient": 8,
        "GameServer": 8,
        "GamePlayer": 8,
        "ObservedClient": 8, "KitchenModel": 5, "Desk": 6, "Kitchen": 8,
        "TrebuchetCLI": 10, "Consistency": 10,
        "TrebuchetTool": 11, "Torment": 11,
    ]
}
