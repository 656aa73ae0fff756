internal import Platform
internal import Trebuchet
internal import TrebuchetActors
internal import TrebuchetClient
internal import TrebuchetWire

/// A call on behalf of an inspector client: `?method=add(_:)&arguments=[1]&principal=ada`.
struct InspectorCall: Sendable {
    let actor: String
    let method: String
    /// Each argument in JSON.
    let arguments: [[UInt8]]
    let principal: String?

    init(_ actor: String, _ query: InspectorQuery) throws(InspectorQuery.InvalidQuery) {
        guard let method = query.text("method") else { throw InspectorQuery.InvalidQuery(text: "method is missing") }
        try self.init(actor, method, query.text("arguments") ?? "[]", query.text("principal"))
    }

    /// - Parameter arguments: a list, in JSON.
    init(
        _ actor: String, _ method: String, _ arguments: String, _ principal: String?
    ) throws(InspectorQuery.InvalidQuery) {
        self.actor = actor
        self.method = method
        self.principal = principal
        guard let arguments = JSONText.elements(Array(arguments.utf8)) else {
            throw InspectorQuery.InvalidQuery(text: "arguments must be a JSON array")
        }
        self.arguments = arguments
    }
}

/// The changes that the inspector can make, if it was opened with `writes`.
extension TrebuchetServer {
    private static let callTime = Duration.seconds(10)

    /// Calls a method as a client in this process with the principal of the call.
    ///
    /// - Parameter peer: the inspector client, for the log.
    func call(_ call: InspectorCall, for peer: String) async throws(TrebuchetError) -> InspectorJSON {
        view.log(
            LogLine.of(
                "inspector: \(peer) calls \(call.method) of \(call.actor)"
                    + (call.principal.map { " as \($0)" } ?? "")))
        var options = TrebuchetClient.Options()
        options.callTimeout = Self.callTime
        let client = TrebuchetClient(transport: localTransport(as: call.principal), options: options)
        let began = MonotonicClock.now
        do {
            try await client.connect()
            let result = try await client.call(actor: call.actor, target: call.method, arguments: call.arguments)
            let duration = MonotonicClock.now &- began
            await client.close()
            return .object([
                ("seconds", .seconds(duration)), ("result", result.map { .encoded($0) } ?? .null), ("error", .null),
            ])
        } catch {
            await client.close()
            let failure = error as? TrebuchetError
            return .object([
                ("seconds", .seconds(MonotonicClock.now &- began)), ("result", .null),
                (
                    "error",
                    .object([
                        ("code", .text(failure.map { "\($0.code)" } ?? "internal")),
                        ("message", .text(failure?.message ?? "\(error)")),
                    ])
                ),
            ])
        }
    }

    /// Closes a connection; nil if it does not exist any more.
    func closeConnection(_ number: UInt64, for peer: String) async throws(TrebuchetError) -> InspectorJSON? {
        guard try await closeConnection(number) else { return nil }
        view.log("inspector: \(peer) closed connection \(number)")
        return .object([("closed", .count(number))])
    }
}
