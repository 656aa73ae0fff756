import Commands
import Networking
import TrebuchetServices
import TrebuchetWire
import WebSockets

/// One connection of a benchmark of the services: calls with their answers, and a count of what streams bring.
///
/// `@unchecked Sendable`: its state is touched on the clients' one reactor alone.
final class ServicePeer: WebSocketHandler, @unchecked Sendable {
    /// Bytes of all messages that streams brought, with the frames' heads (RFC 6455, section 5.2), and how many they were.
    private(set) var streamBytes = 0
    private(set) var streamMessages = 0
    /// Told of each message of a stream, on the reactor.
    var didReceive: (UnsafeMutableRawBufferPointer) -> Void = { _ in }
    private var calls: [Int: CheckedContinuation<[UInt8], any Error>] = [:]
    private var lastCall = 0
    private var socket: WebSocket?
    private let reactor: Reactor

    private init(_ reactor: Reactor) { self.reactor = reactor }

    static func connect(to url: String, _ group: ReactorGroup) async throws -> ServicePeer {
        let peer = ServicePeer(group.reactors[0])
        // One reactor: the peers of a benchmark share its state there.
        let socket = try await WebSocketClient.connect(
            to: url, subprotocols: [Invocation.subprotocol], limits: .wide, reactors: group
        ) { _ in peer }
        await socket.reactor.perform { peer.socket = socket }
        return peer
    }

    /// The result of a call; throws what the server answers instead.
    func call(_ actor: String, _ target: String, _ arguments: [String]) async throws -> JSONValue {
        let answer: [UInt8] = try await withCheckedThrowingContinuation { continuation in
            reactor.execute {
                guard self.socket != nil else {
                    return continuation.resume(throwing: UsageError("the connection is closed"))
                }
                self.lastCall += 1
                self.calls[self.lastCall] = continuation
                self.send(actor, target, arguments, self.lastCall)
            }
        }
        guard case .object(let message) = try JSONValue(json: answer), case .object(let payload)? = message["payload"]
        else { throw UsageError("the answer of \(target) makes no sense") }
        if let error = payload["error"] { throw UsageError("\(target) of \(actor): \(error)") }
        return payload["result"] ?? .null
    }

    /// Opens a query of a collection, and begins to observe its result.
    func observe(_ collection: String, _ query: String) async throws {
        let ticket = try await call(collection, "open(_:)", [query])
        guard case .object(let members) = ticket, case .string(let view)? = members["view"] else {
            throw UsageError("no view for a query: \(ticket)")
        }
        await reactor.perform { self.send(view, "observeResult") }
    }

    /// Calls, or begins to observe, and waits for nothing. On the reactor.
    func send(_ actor: String, _ target: String, _ arguments: [String] = [], _ number: Int = 0) {
        socket?.send(text: Invocation.text(actor, target, arguments, id: "\(number)"))
    }

    /// On the reactor.
    func perform(after delay: Duration, _ body: @escaping () -> Void) {
        socket?.reactor.schedule(after: delay, body)
    }

    /// On the reactor.
    func beginCounting() { (streamBytes, streamMessages) = (0, 0) }
    func close() {
        socket?.abort()
        socket = nil
    }

    func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode) {
        guard Self.isAnswer(message) else {
            streamBytes += message.count + (message.count < 126 ? 2 : message.count < 65_536 ? 4 : 10)
            streamMessages += 1
            return didReceive(message)
        }
        // Most answers have no one who waits for them: number 0.
        guard let number = UnsafeRawBufferPointer(message).number(after: #""callID":""#),
            let call = calls.removeValue(forKey: number)
        else { return }
        call.resume(returning: Array(message))
    }

    private static func isAnswer(_ message: UnsafeMutableRawBufferPointer) -> Bool {
        // {"type":"response"
        message.count > 18 && message[9] == UInt8(ascii: "r") && message[10] == UInt8(ascii: "e")
    }

    func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) {
        self.socket = nil
        for call in calls.values { call.resume(throwing: UsageError("the server closed the connection: \(reason)")) }
        calls = [:]
    }
}
