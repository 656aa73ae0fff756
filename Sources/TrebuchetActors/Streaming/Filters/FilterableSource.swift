internal import Transports
internal import TrebuchetWire

/// A source whose versions filters can look at.
package protocol FilterableSource: AnyStateSource {
    var filters: FilterList { get }
    /// Gives the version of now, as soon as it may be shown; nil when the actor is gone or the state does not encode. In the
    /// actor's isolation.
    func show(_ dates: DateForm, _ body: @escaping (FilterableVersion?) -> Void)
    /// Runs work in the actor's isolation: now, where that is the caller's, or soon.
    func enter(_ work: @escaping @Sendable () -> Void)
}

extension FilterableSource {
    /// What a filter makes of this source; the same for all who ask for the same. In the actor's isolation.
    ///
    /// Who wants dates in whole seconds sees the state in this way without a filter too.
    package func filtered(
        _ filter: StreamFilter, _ dates: DateForm = .milliseconds, clock: any EventLoop,
        terms: FilterTerms = FilterTerms()
    ) throws -> FilteredSource {
        let current = filters.current
        if let found = current.first(where: { $0.filter == filter && $0.dates == dates }) { return found }
        let made = FilteredSource(filter, dates, of: self, clock: clock, bringers: terms.bringers)
        if !made.isWhole, let refusal = filters.refusal(on: terms) { throw refusal }
        // At once: others who ask before it is used are to find it.
        filters.add(made, byteLimit: terms.byteLimit)
        return made
    }
}
