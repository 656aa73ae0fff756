import Synchronization
import Trebuchet

/// A reader of Server-Sent Events, over one connection.
final class EventClient: Sendable {
    /// An event or a comment, by its fields; the lines of its data are joined by line breaks.
    struct Event: Equatable, Sendable {
        var id: String?
        var name: String?
        var data: String?
        var isComment = false
    }

    let client: PageClient
    private let unread = Mutex("")

    /// Sends the request of a stream.
    init(_ path: String, of client: PageClient, _ headers: [String: String] = [:]) throws {
        self.client = client
        try client.ask(path, headers)
    }

    /// Sends the request of a stream, and expects its start.
    static func start(
        _ path: String, of client: PageClient, _ headers: [String: String] = [:]
    ) async throws -> EventClient {
        let events = try EventClient(path, of: client, headers)
        let head = try await client.head()
        guard head.status == 200 else { throw PageClient.ConnectionEnded() }
        return events
    }

    /// The next event; nil at the end of the response.
    func next() async throws -> Event? {
        while true {
            let text: String? = unread.withLock { unread in
                guard let end = unread.firstRange(of: "\n\n") else { return nil }
                defer { unread = String(unread[end.upperBound...]) }
                return String(unread[..<end.lowerBound])
            }
            if let text { return Self.parse(text) }
            let chunk = try await client.chunk()
            guard !chunk.isEmpty else { return nil }
            unread.withLock { $0 += String(decoding: chunk, as: UTF8.self) }
        }
    }

    /// The next data.
    func data() async throws -> String? { try await next()?.data }

    private static func parse(_ text: String) -> Event {
        var event = Event()
        for line in text.split(separator: "\n") {
            if line.hasPrefix(":") { event.isComment = true }
            if line.hasPrefix("id: ") { event.id = String(line.dropFirst(4)) }
            if line.hasPrefix("event: ") { event.name = String(line.dropFirst(7)) }
            if line.hasPrefix("data: ") {
                event.data = (event.data.map { $0 + "\n" } ?? "") + line.dropFirst(6)
            }
        }
        return event
    }
}
