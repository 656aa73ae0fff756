internal import Bytes
internal import Networking
internal import Platform
internal import TrebuchetActors

extension ServerConnection {
    /// The connection as JSON members. Runs on its reactor.
    var inspected: [(String, InspectorJSON)] {
        let peer = peer
        return [
            ("connection", .count(peer.connection)), ("address", .text(peer.address.map { "\($0)" })),
            ("principal", .text(peer.principal)), ("protocol", .count(dates == .milliseconds ? 3 : 2)),
            ("reactor", .text(shard.reactor.name)),
            ("seconds", .seconds(MonotonicClock.now &- opened)), ("streams", .count(streams.count)),
            ("calls", .count(running.count)),
            ("bufferedBytes", .count(max(link.memory?.bufferedBytes ?? 0, link.pendingBytes))),
            ("writable", .flag(isWritable)), ("draining", .flag(isDraining)),
            ("ofNode", .flag(upstream != nil)),
        ]
    }
}

extension TrebuchetServer {
    /// Returns a page of the connections, the oldest first. Collects the numbers from all reactors, and then details for this
    /// page only.
    ///
    /// - Parameter errors: the last error of each connection, by its number.
    func inspectedConnections(
        _ page: ListPage, errors: [UInt64: InspectorJSON]
    ) async throws(TrebuchetError) -> InspectorJSON {
        var numbers: [(number: UInt64, shard: Int)] = []
        for (index, shard) in shards.enumerated() {
            let own = try await queryShards(shard) { Array(shard.connections.keys) }
            numbers += own.map { ($0, index) }
        }
        let found = numbers.count
        numbers.sort { $0.number < $1.number }
        var shown: [(number: UInt64, members: [(String, InspectorJSON)])] = []
        for (index, part) in Dictionary(grouping: page.of(numbers), by: \.shard) {
            let shard = shards[index]
            // A connection that closed meanwhile is omitted.
            shown += try await queryShards(shard) {
                part.compactMap { entry in shard.connections[entry.number].map { (entry.number, $0.inspected) } }
            }
        }
        shown.sort { $0.number < $1.number }
        let list = shown.map { InspectorJSON.object($0.members + [("lastError", errors[$0.number] ?? .null)]) }
        return .object(page.head(found: found) + [("connections", .list(list))])
    }

    private func queryShards<Answer: Sendable>(
        _ shard: ServerShard, _ question: @escaping @Sendable () -> Answer
    ) async throws(TrebuchetError) -> Answer {
        guard let answer = await Self.query(shard.reactor, timeout: Self.answerTime, question) else {
            throw TrebuchetError(.unavailable, "\(shard.reactor.name) does not respond")
        }
        return answer
    }
}
