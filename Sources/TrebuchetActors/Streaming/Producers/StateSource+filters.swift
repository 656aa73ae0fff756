internal import Bytes
internal import TrebuchetWire

/// The interface of a state to its filters. In the actor's isolation.
extension StateSource {
    /// Passes the current version to `body` as soon as it may be shown; nil if the actor was released, an error if the state does
    /// not encode.
    func provideCurrentVersion(
        _ dates: DateEncoding, _ body: @escaping (Result<FilterableVersion?, TrebuchetError>) -> Void
    ) {
        let current = Result { try filterable(dates) }.mapError { unencodable($0) }
        guard let persistence else { return body(current) }
        persistence.publishAfterWrite(while: { [weak filters] in filters?.current.isEmpty == false }) { body(current) }
    }

    /// Returns a closure that passes the current version to filters; nil without filters.
    func makeFilterUpdate(_ filters: [FilteredSource]) -> (() -> Void)? {
        guard !filters.isEmpty else { return nil }
        let list = self.filters
        let feeds = [DateEncoding.milliseconds, .wholeSeconds].compactMap { dates -> (() -> Void)? in
            let matching = filters.filter { $0.dates == dates }
            guard !matching.isEmpty else { return nil }
            do {
                guard let current = try filterable(dates) else { return nil }
                return { list.feed(current, to: matching) }
            } catch {
                let error = unencodable(error)
                return { for filter in matching { filter.fail(error) } }
            }
        }
        return { for feed in feeds { feed() } }
    }

    /// Returns the current version, encoded once for all filters; an existing encoding for other subscribers is reused.
    private func filterable(_ dates: DateEncoding) throws -> FilterableVersion? {
        if let current = filters.version(version, dates) { return current }
        guard property.isThere else { return nil }
        var text: SharedBytes?
        if dates == .milliseconds, recent.newest?.sequence == version { text = recent.newest?.current }
        if text == nil { text = try suffix(dates) }
        guard let text else { return nil }
        let created = FilterableVersion(text, sequence: version, memory: memoryBudget)
        filters.retainVersion(created, dates)
        return created
    }
}
