import Synchronization

/// Recorded values, in order.
final class Log<Value: Sendable>: Sendable {
    private let entries = Mutex<[Value]>([])

    var values: [Value] { entries.withLock { $0 } }
    func record(_ value: Value) { entries.withLock { $0.append(value) } }
    func clear() { entries.withLock { $0 = [] } }
}

/// A latch that one task awaits until another opens it.
actor Latch {
    private var isOpen = false
    private var waiting: [CheckedContinuation<Void, Never>] = []
    private(set) var arrivals = 0

    func wait() async {
        arrivals += 1
        if !isOpen { await withCheckedContinuation { waiting.append($0) } }
    }

    func open() {
        isOpen = true
        for continuation in waiting { continuation.resume() }
        waiting = []
    }
}
