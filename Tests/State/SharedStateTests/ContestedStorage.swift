import Foundation
import SharedState
import Synchronization

/// A file in memory that is changed at chosen moments: during a read, or right after its replacement.
final class ContestedStorage: FileStorage {
    private struct State {
        var data: Data?
        var watches: [@Sendable () -> Void] = []
        var whileReading: (@Sendable () -> Void)?
        var afterReplacing: (@Sendable () -> Void)?
        var isFull = false
        var isHidden = false
    }

    private let state = Mutex(State())

    init(_ text: String? = nil) { state.withLock { $0.data = text.map { Data($0.utf8) } } }

    var text: String? { state.withLock { $0.data.map { String(decoding: $0, as: UTF8.self) } } }

    /// Runs once, between the read of the file and its return.
    func whileReading(_ work: @escaping @Sendable () -> Void) { state.withLock { $0.whileReading = work } }
    /// Runs once, after the replacement of the file and before its return.
    func afterReplacing(_ work: @escaping @Sendable () -> Void) { state.withLock { $0.afterReplacing = work } }
    /// Sets whether writes fail.
    func fill(_ isFull: Bool) { state.withLock { $0.isFull = isFull } }

    /// Sets whether the file is unreadable; watchers are notified.
    func hide(_ isHidden: Bool) {
        let watches = state.withLock { state in
            state.isHidden = isHidden
            return state.watches
        }
        for watch in watches { watch() }
    }

    /// Writes like another process.
    func write(_ text: String?, tells: Bool = true) {
        let watches = state.withLock { state in
            state.data = text.map { Data($0.utf8) }
            return state.watches
        }
        if tells { for watch in watches { watch() } }
    }

    func read(_ file: URL) throws -> Data? {
        let (data, hook, isHidden) = state.withLock { ($0.data, $0.whileReading.take(), $0.isHidden) }
        hook?()
        if isHidden { throw CocoaError(.fileReadNoPermission) }
        return data
    }

    func replace(_ file: URL, with data: Data) throws {
        let (watches, hook, isFull) = state.withLock { state in
            if !state.isFull { state.data = data }
            return (state.isFull ? [] : state.watches, state.afterReplacing.take(), state.isFull)
        }
        for watch in watches { watch() }
        hook?()
        if isFull { throw CocoaError(.fileWriteOutOfSpace) }
    }

    func watch(_ file: URL, onChange: @escaping @Sendable () -> Void) -> SharedSubscription {
        state.withLock { $0.watches.append(onChange) }
        return SharedSubscription()
    }
}
