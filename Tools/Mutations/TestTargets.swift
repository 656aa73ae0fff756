/// The test targets of a module, the fastest and nearest first.
public enum TestTargets {
    /// The default modules of a run: those that process input from the network, and the modules that these reach.
    public static let defaults = [
        "Networking", "WebSockets", "TrebuchetWire", "Trebuchet", "TrebuchetServices", "TrebuchetStore",
    ]

    public static func targets(of module: String) -> [String] {
        switch module {
        case "Networking": ["NetworkingTests", "WebSocketsTests", "IntegrationTests"]
        case "WebSockets": ["WebSocketsTests", "IntegrationTests"]
        case "TrebuchetWire":
            ["TrebuchetWireTests", "StreamingTests", "DeltasTests", "TrebuchetTests", "IntegrationTests"]
        case "Trebuchet": ["TrebuchetTests", "StreamingTests", "IntegrationTests"]
        case "TrebuchetStore": ["TrebuchetStoreTests", "TrebuchetTests"]
        default: [module + "Tests"]
        }
    }
}
