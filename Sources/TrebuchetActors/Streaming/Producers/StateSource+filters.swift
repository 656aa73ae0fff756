internal import Bytes
internal import TrebuchetWire

/// What a state shows to the filters that look at it. In the actor's isolation.
extension StateSource {
    /// Gives the version of now, as soon as it may be shown; nil when the actor is gone, an error when the state does not encode.
    func show(_ dates: DateForm, _ body: @escaping (Result<FilterableVersion?, TrebuchetError>) -> Void) {
        let current = Result { try filterable(dates) }.mapError { unencodable($0) }
        guard let persistence else { return body(current) }
        persistence.show(while: { [weak filters] in filters?.current.isEmpty == false }) { body(current) }
    }

    /// Hands the version of now to filters when it is called; nil where there are none.
    func feeding(_ filters: [FilteredSource]) -> (() -> Void)? {
        guard !filters.isEmpty else { return nil }
        let list = self.filters
        let feeds = [DateForm.milliseconds, .wholeSeconds].compactMap { dates -> (() -> Void)? in
            let fed = filters.filter { $0.dates == dates }
            guard !fed.isEmpty else { return nil }
            do {
                guard let current = try filterable(dates) else { return nil }
                return { list.feed(current, to: fed) }
            } catch {
                let error = unencodable(error)
                return { for filter in fed { filter.fail(error) } }
            }
        }
        return { for feed in feeds { feed() } }
    }

    /// The version of now, encoded once for all filters, and for other observers if they have it already.
    private func filterable(_ dates: DateForm) throws -> FilterableVersion? {
        if let current = filters.version(version, dates) { return current }
        guard property.isThere else { return nil }
        var text: SharedBytes?
        if dates == .milliseconds, recent.newest?.sequence == version { text = recent.newest?.current }
        if text == nil { text = try suffix(dates) }
        guard let text else { return nil }
        let made = FilterableVersion(text, sequence: version, memory: memoryBudget)
        filters.keep(made, dates)
        return made
    }
}
