internal import Bytes
internal import Synchronization
internal import TrebuchetWire

/// The active filters of a state.
package final class FilterList: Sendable {
    /// The filters and the versions that they share.
    private struct State {
        var filters: [FilteredSource] = []
        /// The number of filters that each quota scope has created.
        var filterCounts = UsageCounts<QuotaScope, Int>()
        /// All parts that the filters refer to; nil until computed.
        var pointers: PointerSet?
        /// The newest version.
        var version: FilterableVersion?
        var byteLimit = FilterQuota.defaultByteLimit
    }

    private let state = Mutex(State())
    /// The number of filters. Written under the lock, read without it.
    private let filterCount = Atomic<Int>(0)

    /// True if there are no filters; checked for each change of the state.
    var isEmpty: Bool { count == 0 }

    package var current: [FilteredSource] { state.withLock { $0.filters } }

    /// The number of filters.
    var count: Int { filterCount.load(ordering: .relaxed) }

    /// Returns the error if one more filter may not be added, else nil.
    func refusal(on terms: FilterQuota) -> TrebuchetError? {
        state.withLock { state in
            guard state.filters.count(where: { !$0.filter.acceptsEverything }) < terms.maximumFilters else {
                let text = "limit reached: at most \(terms.maximumFilters) different filters per state"
                return TrebuchetError(.rateLimited, text + " (ServerLimits.filters.perState)")
            }
            for scope in terms.scopes where state.filterCounts[scope] >= terms.share(of: scope) {
                let text =
                    "quota exceeded: \(scope.name) \(terms.share(of: scope)) of the \(terms.maximumFilters) filters of this state"
                return TrebuchetError(.rateLimited, text + " (ServerLimits.filters.perState)")
            }
            return nil
        }
    }

    /// Adds a filter.
    ///
    /// - Parameter byteLimit: the number of bytes that all filters may hold beyond the newest version; unchanged if nil.
    func addFilter(_ filter: FilteredSource, byteLimit: Int? = nil) {
        state.withLock { state in
            if let byteLimit { state.byteLimit = byteLimit }
            guard !state.filters.contains(where: { $0 === filter }) else { return }
            state.filters.append(filter)
            for scope in filter.scopes { state.filterCounts.add(1, to: scope) }
            state.pointers = nil
            filterCount.store(state.filters.count, ordering: .relaxed)
        }
    }

    func remove(_ filter: FilteredSource) {
        state.withLock { state in
            guard let index = state.filters.firstIndex(where: { $0 === filter }) else { return }
            state.filters.remove(at: index)
            for scope in filter.scopes { state.filterCounts.remove(1, from: scope) }
            state.pointers = nil
            if state.filters.isEmpty { state.version = nil }
            filterCount.store(state.filters.count, ordering: .relaxed)
        }
    }

    /// Empties the list when the stream ends.
    func removeAll() -> [FilteredSource] {
        state.withLock { state in
            defer { state = State() }
            filterCount.store(0, ordering: .relaxed)
            return state.filters
        }
    }

    // MARK: Versions

    /// Returns the newest version, if it has this number.
    func version(_ sequence: UInt64) -> FilterableVersion? {
        state.withLock { $0.version.flatMap { $0.sequence == sequence ? $0 : nil } }
    }

    /// Keeps a version while there are filters, unless a newer one is kept.
    func retainVersion(_ version: FilterableVersion) {
        state.withLock { state in
            guard !state.filters.isEmpty, state.version?.sequence ?? 0 <= version.sequence else { return }
            state.version = version
        }
    }

    /// Locates the parts of a version and passes it to filters. In the actor's isolation.
    func feed(_ version: FilterableVersion, to matching: [FilteredSource]) {
        let pointers = state.withLock { state in
            let pointers =
                state.pointers ?? PointerSet(state.filters.lazy.flatMap { FilterEvaluation.pointers(of: $0.filter) })
            state.pointers = pointers
            return pointers
        }
        version.find(pointers)
        pass(version, to: matching)
    }

    /// Passes a version whose parts are located to filters. In the actor's isolation.
    func pass(_ version: FilterableVersion, to matching: [FilteredSource]) {
        var room = room(excluding: version)
        for filter in matching { filter.receiveVersion(version, room: &room) }
        version.dropPreparedUpdates()
    }

    /// Passes a version to one filter with a new subscriber. The cost is that of the needed part.
    func passVersion(_ version: FilterableVersion, to filter: FilteredSource, at pointer: String) -> Bool {
        let needed = version.cost(at: pointer)
        var room = needed <= Self.smallPart ? needed : room(excluding: version)
        guard needed <= room else {
            endForRoom(filter)
            return false
        }
        filter.receiveVersion(version, room: &room)
        return true
    }

    /// The size up to which a part is passed on without a check of all filters.
    private static let smallPart = 4 << 10

    /// Returns the number of bytes that filters may still hold, after the filters above the limit have ended.
    private func room(excluding newest: FilterableVersion) -> Int {
        let (filters, limit) = state.withLock { ($0.filters, $0.byteLimit) }
        return limit - newest.ownBytes - makeRoom(within: limit - newest.ownBytes, excluding: newest, filters)
    }

    /// Ends filters whose readers have not received older versions, until the bytes held for them are within the limit. Returns
    /// the remaining number of bytes.
    private func makeRoom(within limit: Int, excluding newest: FilterableVersion, _ filters: [FilteredSource]) -> Int {
        var users: [ObjectIdentifier: Int] = [:]
        var retained: [(filter: FilteredSource, text: SharedBytes, sequence: UInt64)] = []
        var bytes = 0
        for filter in filters {
            for (text, sequence) in filter.undeliveredTexts where sequence != newest.sequence {
                retained.append((filter, text, sequence))
                users[ObjectIdentifier(text), default: 0] += 1
                if users[ObjectIdentifier(text)] == 1 { bytes += text.count }
            }
        }
        for (filter, text, _) in retained.sorted(by: { $0.sequence < $1.sequence }) where bytes > limit {
            users[ObjectIdentifier(text)]? -= 1
            if users[ObjectIdentifier(text)] == 0 { bytes -= text.count }
            endForRoom(filter)
        }
        return bytes
    }

    /// Ends a filter that exceeds the limit or would exceed it.
    func endForRoom(_ filter: FilteredSource) {
        let limit = state.withLock { $0.byteLimit }
        let text = "limit reached: the filters of this state buffer at most \(limit) bytes"
        filter.fail(TrebuchetError(.rateLimited, text + " (ServerLimits.filters.bytesPerState)"))
    }
}
