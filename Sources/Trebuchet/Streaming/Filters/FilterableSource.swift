internal import Networking
internal import TrebuchetWire

/// A source whose versions filters can look at.
protocol FilterableSource: AnyStateSource {
    var filters: FilterList { get }
    /// Gives the version of now, as soon as it may be shown; nil when the actor is gone or the state does not encode. In the
    /// actor's isolation.
    func show(_ wire: ProtocolVersion, _ body: @escaping (FilterableVersion?) -> Void)
    /// Runs work in the actor's isolation: now, where that is the caller's, or soon.
    func enter(_ work: @escaping @Sendable () -> Void)
}

extension FilterableSource {
    /// What a filter makes of this source; the same for all who ask for the same. In the actor's isolation.
    ///
    func filtered(
        _ filter: StreamFilter, _ version: ProtocolVersion, clock: Reactor, terms: FilterTerms = FilterTerms()
    ) throws -> FilteredSource {
        let version: ProtocolVersion = version == .v3 ? .v3 : .v2
        let current = filters.current
        if let found = current.first(where: { $0.filter == filter && $0.version == version }) { return found }
        if let refusal = filters.refusal(on: terms) { throw refusal }
        let made = FilteredSource(filter, version: version, of: self, clock: clock, bringers: terms.bringers)
        // At once: others who ask before it is used are to find it.
        filters.add(made, byteLimit: terms.byteLimit)
        return made
    }
}
