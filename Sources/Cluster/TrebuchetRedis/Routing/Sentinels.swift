internal import Synchronization

/// The sentinels that know the primary of a name. They are queried without user and password, which belong to the
/// server.
final class Sentinels: Sendable {
    /// The report of one sentinel. Each failover agreed by the sentinels increments the epoch.
    struct PrimaryReport: Equatable, Sendable {
        let epoch: Int64
        let endpoint: RedisURL.Endpoint
    }

    private let name: String
    private let clients: [RedisClient]
    /// The timeout of a query.
    private let timeout: Duration
    /// The report with the highest epoch so far: a sentinel that was partitioned does not know of later failovers.
    private let newest = Mutex<PrimaryReport?>(nil)

    init(_ url: RedisURL, _ name: String, _ settings: RedisSettings) {
        self.name = name
        timeout = settings.topologyInterval
        clients = url.endpoints.map { RedisClient(RedisTarget(sentinel: $0, of: url), settings: settings) }
    }

    deinit { for client in clients { client.close() } }

    /// Queries all sentinels concurrently, and uses the report with the highest epoch.
    func primary() async throws(RedisError) -> RedisURL.Endpoint {
        let answers = await withTaskGroup(of: Result<PrimaryReport, RedisError>.self) { group in
            for client in clients {
                group.addTask { [name, timeout] in await Self.query(client, name, timeout: timeout) }
            }
            var answers: [Result<PrimaryReport, RedisError>] = []
            for await answer in group { answers.append(answer) }
            return answers
        }
        var reasons: [String] = []
        var words: [PrimaryReport] = []
        for answer in answers {
            switch answer {
            case .success(let word): words.append(word)
            case .failure(let error): reasons.append(error.description)
            }
        }
        guard !words.isEmpty else {
            throw .unavailable("no sentinel reported the address of the server: " + reasons.joined(separator: "; "))
        }
        return newest.withLock { newest in
            let word = Self.newest(of: words, known: newest)
            newest = word
            return word.endpoint
        }
    }

    /// Returns the newest report.
    ///
    /// - Parameters:
    ///   - words: At least one report.
    ///   - known: The last used report. It wins over reports that are not newer, because a sentinel may change addresses within one
    ///     epoch.
    static func newest(of words: [PrimaryReport], known: PrimaryReport?) -> PrimaryReport {
        let highest = words.max { $0.epoch < $1.epoch }!
        guard let known, known.epoch >= highest.epoch else { return highest }
        if known.epoch > highest.epoch { return known }
        // Within one epoch it stays while any sentinel confirms it.
        return words.contains(known) ? known : highest
    }

    private static func query(
        _ client: RedisClient, _ name: String, timeout: Duration
    ) async -> Result<PrimaryReport, RedisError> {
        do throws(RedisError) {
            // The epoch first: the address is at least as new. During a failover, MASTER has the former address.
            let master = RedisCommand("SENTINEL", ["MASTER", .text(name)])
            let epoch: Int64
            do throws(RedisError) {
                epoch = PrimaryReport.epoch(in: try await client.send(master, timeout: timeout).elements ?? [])
            } catch {
                guard case .reply = error else { throw error }
                epoch = 0
            }
            let address = RedisCommand("SENTINEL", ["GET-MASTER-ADDR-BY-NAME", .text(name)])
            let words = try await client.send(address, timeout: timeout).elements ?? []
            guard words.count == 2, let host = words[0].text, let port = words[1].number.flatMap({ Int(exactly: $0) }),
                (1...65_535).contains(port)
            else { throw .unavailable("a sentinel does not know a server named '\(name)'") }
            return .success(PrimaryReport(epoch: epoch, endpoint: RedisURL.Endpoint(host: host, port: port)))
        } catch {
            return .failure(error)
        }
    }
}

extension Sentinels.PrimaryReport {
    /// Parses the reply to `SENTINEL MASTER`: names and values in turn.
    fileprivate static func epoch(in fields: [RESPValue]) -> Int64 {
        for index in stride(from: 0, to: fields.count - 1, by: 2) where fields[index].isText("config-epoch") {
            return fields[index + 1].number ?? 0
        }
        return 0
    }
}
