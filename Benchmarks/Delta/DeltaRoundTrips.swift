import Platform
import Trebuchet
import WebSockets

/// Measures the path from the call that changes an item to the reader that receives the new value, over a WebSocket, for one
/// board.
struct DeltaRoundTrips<Board: DeltaBenchBoard> {
    private let board: Board
    private let name: String
    private let count: Int
    private var states: StateStream<Board.Items>.Iterator
    private var round = 0
    /// Nanoseconds, one for each change.
    private(set) var times: [Int] = []
    /// Processor time per change of the server's thread, and of the rest of the process, which is the client. One value for
    /// each series.
    private(set) var serverTimes: [Int] = []
    private(set) var clientTimes: [Int] = []

    init(_ board: Board, named name: String, count: Int) async throws {
        self.board = board
        self.name = name
        self.count = count
        states = await board.observeItems().makeAsyncIterator()
        _ = await states.next()
    }

    mutating func run(_ rounds: Int) async throws {
        let (server, process) = (try await board.processorTime(), ProcessorTime.process)
        for _ in 0..<rounds {
            let start = MonotonicClock.now
            let id = try await change()
            while let items = await states.next(), items[id].count != round {}
            times.append(Int(MonotonicClock.now - start))
        }
        let (worked, all) = (try await board.processorTime() - server, ProcessorTime.process - process)
        serverTimes.append(worked / rounds)
        clientTimes.append((all - worked) / rounds)
    }

    private mutating func change() async throws -> Int {
        round += 1
        let id = round &* 7_919 % count
        try await board.update(id, round)
        return id
    }

    /// Returns the number of bytes that a subscriber receives for a change: the longest of several messages.
    mutating func wireBytes(_ url: String) async throws -> Int {
        let (sizes, continuation) = AsyncStream.makeStream(of: Int.self)
        let socket = try await WebSocketClient.connect(
            to: url, subprotocols: [Invocation.subprotocol], limits: .wide
        ) { _ in MessageSizes(continuation) }
        socket.send(text: Invocation.text(name, "observeItems"))
        var messages = sizes.makeAsyncIterator()
        // Skip the beginning of the stream and the snapshot.
        _ = await messages.next()
        _ = await messages.next()
        var longest = 0
        for _ in 0..<20 {
            _ = try await change()
            longest = max(longest, await messages.next() ?? 0)
        }
        socket.abort()
        return longest
    }
}

/// Records the length of each received message.
private final class MessageSizes: WebSocketHandler {
    private let sizes: AsyncStream<Int>.Continuation

    init(_ sizes: AsyncStream<Int>.Continuation) { self.sizes = sizes }

    func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode) {
        sizes.yield(message.count)
    }

    func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) { sizes.finish() }
}
