extension Sequence {
    /// Returns the elements, transformed one after another.
    nonisolated(nonsending) public func mapAsync<Output, Failure: Error>(
        _ transform: nonisolated(nonsending) (Element) async throws(Failure) -> Output
    ) async throws(Failure) -> [Output] {
        var outputs: [Output] = []
        outputs.reserveCapacity(underestimatedCount)
        for element in self { outputs.append(try await transform(element)) }
        return outputs
    }

    /// Returns the non-nil results of `transform`, called for one element after another.
    nonisolated(nonsending) public func compactMapAsync<Output, Failure: Error>(
        _ transform: nonisolated(nonsending) (Element) async throws(Failure) -> Output?
    ) async throws(Failure) -> [Output] {
        var outputs: [Output] = []
        for element in self {
            if let output = try await transform(element) { outputs.append(output) }
        }
        return outputs
    }

    /// Returns the elements of the sequences that `transform` returns, called for one element after another.
    nonisolated(nonsending) public func flatMapAsync<Outputs: Sequence, Failure: Error>(
        _ transform: nonisolated(nonsending) (Element) async throws(Failure) -> Outputs
    ) async throws(Failure) -> [Outputs.Element] {
        var outputs: [Outputs.Element] = []
        for element in self { outputs += try await transform(element) }
        return outputs
    }

    /// Returns the elements for which the condition holds, checked one after another.
    nonisolated(nonsending) public func filterAsync<Failure: Error>(
        _ isIncluded: nonisolated(nonsending) (Element) async throws(Failure) -> Bool
    ) async throws(Failure) -> [Element] {
        var elements: [Element] = []
        for element in self where try await isIncluded(element) { elements.append(element) }
        return elements
    }

    /// Returns the elements for which the condition holds, like ``filterAsync(_:)``.
    nonisolated(nonsending) public func filter<Failure: Error>(
        _ isIncluded: nonisolated(nonsending) (Element) async throws(Failure) -> Bool
    ) async throws(Failure) -> [Element] {
        try await filterAsync(isIncluded)
    }

    /// Calls `body` with each element, one after another.
    nonisolated(nonsending) public func forEachAsync<Failure: Error>(
        _ body: nonisolated(nonsending) (Element) async throws(Failure) -> Void
    ) async throws(Failure) {
        for element in self { try await body(element) }
    }

    /// Returns true if the condition holds for an element. Elements are checked one after another until it does.
    nonisolated(nonsending) public func containsAsync<Failure: Error>(
        where condition: nonisolated(nonsending) (Element) async throws(Failure) -> Bool
    ) async throws(Failure) -> Bool {
        for element in self where try await condition(element) { return true }
        return false
    }
}

extension Optional {
    /// Returns the wrapped value, transformed.
    nonisolated(nonsending) public func mapAsync<Output, Failure: Error>(
        _ transform: nonisolated(nonsending) (Wrapped) async throws(Failure) -> Output
    ) async throws(Failure) -> Output? {
        guard let self else { return nil }
        return try await transform(self)
    }

    /// Returns the wrapped value, transformed into an optional.
    nonisolated(nonsending) public func flatMapAsync<Output, Failure: Error>(
        _ transform: nonisolated(nonsending) (Wrapped) async throws(Failure) -> Output?
    ) async throws(Failure) -> Output? {
        guard let self else { return nil }
        return try await transform(self)
    }

    /// Returns the wrapped value, transformed, or the default.
    public func map<Output, Failure: Error>(
        _ transform: (Wrapped) throws(Failure) -> Output, default defaultValue: @autoclosure () -> Output
    ) throws(Failure) -> Output {
        guard let self else { return defaultValue() }
        return try transform(self)
    }
}
