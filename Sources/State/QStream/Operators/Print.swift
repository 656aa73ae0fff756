extension Stream {
    /// Returns the same values, and prints each as it passes.
    ///
    ///     self          1────2────3──
    ///     print("n")    1────2────3──
    ///     written       n: 1 n: 2 n: 3
    ///
    /// - Parameters:
    ///   - label: the prefix of each line.
    ///   - printDate: whether the time since the chain was built precedes the label.
    ///   - write: the receiver of the lines; by default standard output.
    nonisolated public func print(
        _ label: String = "", printDate: Bool = false, to write: (@Sendable (String) -> Void)? = nil
    ) async -> Streams.Derived<Value> {
        let outlet: Outlet<Value> = outletBelow()
        let begin = ContinuousClock.now
        return await derive(into: outlet) { value, wave in
            let time = printDate ? "\(ContinuousClock.now - begin) " : ""
            let line = time + (label.isEmpty ? "" : "\(label): ") + "\(value)"
            if let write { write(line) } else { Swift.print(line) }
            await outlet.emit(value, wave)
        }
    }
}
