/// Which test targets are a module's tests, the quickest and nearest first.
public enum TestTargets {
    /// The modules of a run that names none: where strangers come in, and what they reach.
    public static let usual = [
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
