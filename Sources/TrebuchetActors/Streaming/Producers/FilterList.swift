internal import Bytes
internal import Synchronization
internal import TrebuchetWire

/// The filters that look at a state now.
package final class FilterList: Sendable {
    private struct State {
        var filters: [FilteredSource] = []
        /// How many of them each party has brought.
        var brought: [Party: Int] = [:]
        /// All parts that they look at, once somebody has asked.
        var pointers: PointerSet?
        /// The newest version, by the way its dates are written.
        var versions: [DateForm: FilterableVersion] = [:]
        var byteLimit = FilterTerms.usualBytes
    }

    private let state = Mutex(State())
    /// How many there are. Written under the lock, read without.
    private let count = Atomic<Int>(0)

    /// Whether there is any: what each change of a state asks.
    var isEmpty: Bool { count.load(ordering: .relaxed) == 0 }

    package var current: [FilteredSource] { state.withLock { $0.filters } }

    /// Why one more filter may not be added; nil when it may.
    func refusal(on terms: FilterTerms) -> TrebuchetError? {
        state.withLock { state in
            guard state.filters.count(where: { !$0.isWhole }) < terms.most else {
                let text = "\(terms.most) different filters look at this state already"
                return TrebuchetError(.rateLimited, text + " (ServerLimits.filtersPerState)")
            }
            for party in terms.bringers where state.brought[party, default: 0] >= terms.share(of: party) {
                let text =
                    "\(party.name) \(terms.share(of: party)) of the \(terms.most) different filters of this state already"
                return TrebuchetError(.rateLimited, text + " (ServerLimits.filtersPerState)")
            }
            return nil
        }
    }

    /// - Parameter byteLimit: bytes that all of them may hold beyond the newest version; unchanged when nil.
    func add(_ filter: FilteredSource, byteLimit: Int? = nil) {
        state.withLock { state in
            if let byteLimit { state.byteLimit = byteLimit }
            guard !state.filters.contains(where: { $0 === filter }) else { return }
            state.filters.append(filter)
            for party in filter.bringers { state.brought[party, default: 0] += 1 }
            state.pointers = nil
            count.store(state.filters.count, ordering: .relaxed)
        }
    }

    func remove(_ filter: FilteredSource) {
        state.withLock { state in
            guard let place = state.filters.firstIndex(where: { $0 === filter }) else { return }
            state.filters.remove(at: place)
            for party in filter.bringers {
                let count = state.brought[party, default: 1]
                state.brought[party] = count > 1 ? count - 1 : nil
            }
            state.pointers = nil
            if state.filters.isEmpty { state.versions = [:] }
            count.store(state.filters.count, ordering: .relaxed)
        }
    }

    /// Empties the list, for the end.
    func removeAll() -> [FilteredSource] {
        state.withLock { state in
            defer { state = State() }
            count.store(0, ordering: .relaxed)
            return state.filters
        }
    }

    // MARK: Versions

    /// The newest version, if it is this one.
    func version(_ sequence: UInt64, _ dates: DateForm) -> FilterableVersion? {
        state.withLock { $0.versions[dates].flatMap { $0.sequence == sequence ? $0 : nil } }
    }

    /// Keeps a version while there are filters.
    func keep(_ version: FilterableVersion, _ dates: DateForm) {
        state.withLock { if !$0.filters.isEmpty { $0.versions[dates] = version } }
    }

    /// Hands a version to filters. In the actor's isolation.
    func feed(_ version: FilterableVersion, to fed: [FilteredSource]) {
        let pointers = state.withLock { state in
            let pointers =
                state.pointers ?? PointerSet(state.filters.lazy.flatMap { FilterEvaluation.pointers(of: $0.filter) })
            state.pointers = pointers
            return pointers
        }
        version.find(pointers)
        var room = room(besides: version)
        for filter in fed { filter.take(version, room: &room) }
    }

    /// The same for one filter whose observer has just come: what it needs costs as much as that alone.
    func show(_ version: FilterableVersion, to filter: FilteredSource, at pointer: String) -> Bool {
        let needed = version.cost(at: pointer)
        var room = needed <= Self.smallPart ? needed : room(besides: version)
        guard needed <= room else {
            endForRoom(filter)
            return false
        }
        filter.take(version, room: &room)
        return true
    }

    /// Bytes of a part that are not worth a look at all filters.
    private static let smallPart = 4 << 10

    /// How many bytes more the filters may hold, after those that hold too much have ended.
    private func room(besides newest: FilterableVersion) -> Int {
        let (filters, limit) = state.withLock { ($0.filters, $0.byteLimit) }
        return limit - newest.ownBytes - makeRoom(within: limit - newest.ownBytes, besides: newest, filters)
    }

    /// Ends filters whose readers have not taken older versions, until what is held of these is within the limit. Returns
    /// how many bytes that is.
    private func makeRoom(within limit: Int, besides newest: FilterableVersion, _ filters: [FilteredSource]) -> Int {
        var users: [ObjectIdentifier: Int] = [:]
        var held: [(filter: FilteredSource, text: SharedBytes, sequence: UInt64)] = []
        var bytes = 0
        for filter in filters {
            for (text, sequence) in filter.held where sequence != newest.sequence {
                held.append((filter, text, sequence))
                users[ObjectIdentifier(text), default: 0] += 1
                if users[ObjectIdentifier(text)] == 1 { bytes += text.count }
            }
        }
        for (filter, text, _) in held.sorted(by: { $0.sequence < $1.sequence }) where bytes > limit {
            users[ObjectIdentifier(text)]? -= 1
            if users[ObjectIdentifier(text)] == 0 { bytes -= text.count }
            endForRoom(filter)
        }
        return bytes
    }

    /// Ends a filter that holds too much, or would.
    func endForRoom(_ filter: FilteredSource) {
        let limit = state.withLock { $0.byteLimit }
        let text = "the filters of this state may hold \(limit) bytes, and this one needs more"
        filter.fail(TrebuchetError(.rateLimited, text + " (ServerLimits.filterBytesPerState)"))
    }
}
