internal import Synchronization

/// Those who know which server is the primary of a name. They are asked without user and password, which are the server's.
final class Sentinels: Sendable {
    private let name: String
    private let clients: [RedisClient]
    /// Which of them is asked first: the last who answered.
    private let first = Mutex(0)

    init(_ url: RedisURL, _ name: String, _ settings: RedisSettings) {
        self.name = name
        clients = url.endpoints.map { RedisClient(RedisTarget(sentinel: $0, of: url), settings: settings) }
    }

    deinit { for client in clients { client.close() } }

    /// Asks one after the other until one knows.
    func primary() async throws(RedisError) -> RedisURL.Endpoint {
        var reasons: [String] = []
        let first = first.withLock { $0 }
        for turn in clients.indices {
            let index = (first + turn) % clients.count
            do throws(RedisError) {
                let command = RedisCommand("SENTINEL", ["GET-MASTER-ADDR-BY-NAME", .text(name)])
                let words = try await clients[index].send(command).elements ?? []
                guard words.count == 2, let host = words[0].text,
                    let port = words[1].number.flatMap({ Int(exactly: $0) }),
                    (1...65_535).contains(port)
                else {
                    reasons.append("a sentinel knows no server of the name '\(name)'")
                    continue
                }
                self.first.withLock { $0 = index }
                return RedisURL.Endpoint(host: host, port: port)
            } catch {
                reasons.append(error.description)
            }
        }
        throw .unavailable("no sentinel says where the server is: " + reasons.joined(separator: "; "))
    }
}
