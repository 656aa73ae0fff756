import Commands
import Networking
import TrebuchetServices
import TrebuchetWire
import WebSockets

/// One connection of a services benchmark: makes calls, and counts stream messages.
///
/// `@unchecked Sendable`: its state is used on the clients' one reactor only.
final class ServicePeer: WebSocketHandler, @unchecked Sendable {
    /// The bytes of all stream messages with their frame headers (RFC 6455, section 5.2), and their number.
    private(set) var streamBytes = 0
    private(set) var streamMessages = 0
    /// Receives each stream message, on the reactor.
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

    /// Returns the result of a call; throws if the server responds with an error.
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
        else { throw UsageError("invalid response of \(target)") }
        if let error = payload["error"] { throw UsageError("\(target) of \(actor): \(error)") }
        return payload["result"] ?? .null
    }

    /// Opens a query of a collection, and observes its result.
    func observe(_ collection: String, _ query: String) async throws {
        let ticket = try await call(collection, "open(_:)", [query])
        guard case .object(let members) = ticket, case .string(let view)? = members["view"] else {
            throw UsageError("no view for a query: \(ticket)")
        }
        await reactor.perform { self.send(view, "observeResult") }
    }

    /// Sends a call or a stream request without waiting. On the reactor.
    func send(_ actor: String, _ target: String, _ arguments: [String] = [], _ number: Int = 0) {
        socket?.send(text: Invocation.text(actor, target, arguments, id: "\(number)"))
    }

    /// Schedules work on the reactor. Must be called there.
    func perform(after delay: Duration, _ body: @escaping () -> Void) {
        socket?.reactor.schedule(after: delay, body)
    }

    /// Resets the counters. On the reactor.
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
        // Most responses have no waiting caller: number 0.
        guard let number = UnsafeRawBufferPointer(message).number(after: #""callID":""#),
            let call = calls.removeValue(forKey: number)
        else { return }
        call.resume(returning: Array(message))
    }

    private static func isAnswer(_ message: UnsafeMutableRawBufferPointer) -> Bool {
        // The message begins with {"type":"response".
        message.count > 18 && message[9] == UInt8(ascii: "r") && message[10] == UInt8(ascii: "e")
    }

    func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) {
        self.socket = nil
        for call in calls.values { call.resume(throwing: UsageError("the server closed the connection: \(reason)")) }
        calls = [:]
    }
}
