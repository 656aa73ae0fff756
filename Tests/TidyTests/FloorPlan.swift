/// The floor each module stands on. A module may import only modules of lower floors.
///
/// A new module gets its floor here and in Docs/Architecture.md.
enum FloorPlan {
    static let floors: [String: Int] = [
        "CEpoll": 0, "COpenSSL": 0, "CZlib": 0, "CSQLite": 0, "Bytes": 0, "SwiftReading": 0, "TrebuchetMacros": 1,
        "StateMachineMacros": 0, "TestCertificates": 0, "Mutations": 0,
        "DocumentedDefaults": 0, "ToolOptions": 0, "ServicesPython": 0,
        "CAllocationCount": 0,
        "ClientGenerator": 1, "GenerateTool": 2, "GenerateClient": 3,
        "Relays": 1, "Networking": 1, "TrebuchetWire": 1,
        "WebSockets": 2, "Deltas": 2, "QStream": 2, "Loading": 2, "StateMachines": 2, "SharedState": 2,
        "Trebuchet": 3,
        "TrebuchetStore": 4, "TrebuchetRedis": 4, "TrebuchetServices": 4, "TrebuchetTesting": 4,
        "Interop": 4, "Interop2": 4,
        "Commands": 5, "ServicesClient": 5,
        "Benchmarks": 6, "ServicesClientTool": 6, "Fuzz": 6, "Consistency": 6, "Mutate": 6, "TodosWeb": 6, "ChatWeb": 6,
        "TodoModel": 4, "GameModel": 4, "TodoServer": 6, "TodoClient": 6, "GameServer": 6, "GamePlayer": 6,
        "ObservedClient": 6,
        "TrebuchetCLI": 7,
        "TrebuchetTool": 8, "Torment": 8,
    ]
}
