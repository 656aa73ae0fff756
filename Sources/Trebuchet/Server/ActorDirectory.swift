internal import Distributed
internal import Synchronization

/// The actors that a server has exposed, by name, and those that it makes on demand.
final class ActorDirectory: Sendable {
    /// Makes the record of an actor for a name.
    typealias Factory = @Sendable (String) async throws -> ActorRecord

    private struct Pattern {
        let prefix: String
        let make: Factory
    }

    private struct Contents {
        var records: [String: ActorRecord] = [:]
        var patterns: [Pattern] = []
        /// Of actors that were exposed by name and have to be loaded.
        var loading: [String: Factory] = [:]
        var activating: [String: Task<ActorRecord, any Error>] = [:]
        /// Names of those that were made on demand, or are being made.
        var onDemand: Set<String> = []
    }

    private let contents = Mutex(Contents())
    private let limit: Int

    init(actorsOnDemand limit: Int) { self.limit = limit }

    func insert(_ record: ActorRecord) {
        contents.withLock { contents in
            contents.records[record.name] = record
            contents.loading[record.name] = nil
            contents.onDemand.remove(record.name)
        }
    }

    /// The actor of this name is there, but its record is made when it is first called, and anew after a failure.
    func insert(_ name: String, _ load: @escaping Factory) {
        contents.withLock { contents in
            contents.records[name] = nil
            contents.loading[name] = load
            contents.onDemand.remove(name)
        }
    }

    func remove(_ name: String) {
        contents.withLock { contents in
            contents.records[name] = nil
            contents.loading[name] = nil
            if contents.activating[name] == nil { contents.onDemand.remove(name) }
        }
    }

    func record(_ name: String) -> ActorRecord? { contents.withLock { $0.records[name] } }

    var names: [String] { contents.withLock { $0.records.keys.sorted() } }

    /// How many were made on demand, or are being made, and how many are being made or loaded.
    var counts: (onDemand: Int, activating: Int) { contents.withLock { ($0.onDemand.count, $0.activating.count) } }

    /// Actors for names that begin with `prefix` are made when they are first called. The longest prefix wins.
    func insert(prefix: String, _ make: @escaping Factory) {
        contents.withLock { contents in
            contents.patterns.removeAll { $0.prefix == prefix }
            contents.patterns.append(Pattern(prefix: prefix, make: make))
            contents.patterns.sort { $0.prefix.utf8.count > $1.prefix.utf8.count }
        }
    }

    /// The task that makes the actor of this name, the same one for all who ask meanwhile; nil when no pattern fits.
    func activate(_ name: String) throws -> Task<ActorRecord, any Error>? {
        try contents.withLock { contents in
            if let running = contents.activating[name] { return running }
            // Another reactor may have asked for it, and got it, since the caller looked.
            if let record = contents.records[name] { return Task { record } }
            if let load = contents.loading[name] {
                let task = Task { try await self.make(name, load) }
                contents.activating[name] = task
                return task
            }
            let fitting = contents.patterns.first {
                name.hasPrefix($0.prefix) && name.utf8.count > $0.prefix.utf8.count
            }
            guard let pattern = fitting else { return nil }
            guard contents.onDemand.count < limit else {
                throw TrebuchetError(
                    .rateLimited, "\(limit) actors made on demand live already; '\(name)' is one too many")
            }
            contents.onDemand.insert(name)
            let task = Task { try await self.make(name, pattern.make) }
            contents.activating[name] = task
            return task
        }
    }

    private func make(_ name: String, _ make: Factory) async throws -> ActorRecord {
        do {
            let record = try await make(name)
            return contents.withLock { contents in
                contents.activating[name] = nil
                // One that was exposed under this name meanwhile has been put there on purpose.
                if let exposed = contents.records[name] { return exposed }
                contents.records[name] = record
                return record
            }
        } catch {
            contents.withLock { contents in
                contents.activating[name] = nil
                contents.onDemand.remove(name)
            }
            throw error
        }
    }
}
