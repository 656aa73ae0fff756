internal import Networking
internal import Synchronization
internal import TrebuchetWire

/// One version of a state in JSON.
struct FilterableVersion {
    let data: [UInt8]
    let sequence: UInt64
}

/// A source whose versions filters can look at.
protocol FilterableSource: AnyStateSource {
    var filters: FilterList { get }
    /// Feeds a filter from now on, and gives it the version of now as soon as that may be shown; nil when the actor is gone or
    /// the state does not encode. In the actor's isolation.
    func add(_ filter: FilteredSource, _ begin: @escaping (FilterableVersion?) -> Void)
    func remove(_ filter: FilteredSource)
}

extension FilterableSource {
    func remove(_ filter: FilteredSource) { filters.remove(filter) }

    /// What a filter makes of this source; the same for all who ask for the same. In the actor's isolation.
    func filtered(_ filter: StreamFilter, _ version: ProtocolVersion, clock: Reactor) throws -> FilteredSource {
        let version: ProtocolVersion = version == .v3 ? .v3 : .v2
        if let found = filters.current.first(where: { $0.filter == filter && $0.version == version }) { return found }
        guard filters.current.count < FilterList.most else {
            throw TrebuchetError(.rateLimited, "\(FilterList.most) different filters look at this state already")
        }
        let made = FilteredSource(filter, version: version, of: self, clock: clock)
        // At once: others who ask before it is used are to find it.
        filters.add(made)
        return made
    }
}

/// The filters that look at a state now.
final class FilterList: Sendable {
    /// Different filters of one state; each costs time with every version.
    static let most = 1_000

    private let list = Mutex<[FilteredSource]>([])

    var current: [FilteredSource] { list.withLock { $0 } }

    func add(_ filter: FilteredSource) {
        list.withLock { list in
            if !list.contains(where: { $0 === filter }) { list.append(filter) }
        }
    }

    func remove(_ filter: FilteredSource) { list.withLock { $0.removeAll { $0 === filter } } }

    /// Empties the list, for the end.
    func removeAll() -> [FilteredSource] {
        list.withLock { list in
            defer { list = [] }
            return list
        }
    }
}
