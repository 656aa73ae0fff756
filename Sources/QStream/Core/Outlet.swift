internal import Synchronization

/// The end of a stream where values come out: the current value, and those who are attached.
public final class Outlet<Value: Sendable>: @unchecked Sendable {
    // Unchecked: all variables and the memory of `cell` are touched only under `lock`. They are not inside the mutex, and
    // the value is not an optional, because types made of `Value` would be looked up at each delivery: that took half of
    // its time.
    private let lock = Mutex<Void>(())
    /// Initialized when `hasValue` is true.
    private let cell = UnsafeMutablePointer<Value>.allocate(capacity: 1)
    private var hasValue: Bool
    /// In the order in which they were attached, which is the order of their numbers.
    private var inlets: [Inlet<Value>] = []
    private var lastNumber: UInt64 = 0
    private var above: [any Upstream] = []
    private var begun: [Wave] = []

    private let keepsValue: Bool
    private let level: Atomic<Int>

    /// - Parameter keepsValue: false for a stream of impulses, which never has a current value.
    init(_ value: Value? = nil, keepsValue: Bool = true, height: Int = 0) {
        if let value { cell.initialize(to: value) }
        hasValue = value != nil
        self.keepsValue = keepsValue
        level = Atomic(height)
    }

    deinit {
        if hasValue { cell.deinitialize(count: 1) }
        cell.deallocate()
    }

    var current: Value? { lock.withLock { _ in hasValue ? cell.pointee : nil } }
    var height: Int { level.load(ordering: .relaxed) }
    /// How many are attached.
    package var inletCount: Int { lock.withLock { _ in inlets.count } }

    /// Makes the value current and hands it to those attached at this moment, one after another.
    nonisolated(nonsending) func emit(_ new: Value, _ wave: Wave) async {
        // The old value comes out of the lock before it is released: its `deinit` may be code that uses this stream.
        var old = new
        let isFirst = wave.origin === self
        let inlets = lock.withLock { _ in
            // In one step with the list of those who get the value: who is attached later finds the wave here.
            if isFirst { begun.append(wave) }
            if keepsValue {
                if hasValue {
                    swap(&cell.pointee, &old)
                } else {
                    cell.initialize(to: new)
                    hasValue = true
                }
            }
            return self.inlets
        }
        // Not held any longer than it is current.
        old = new
        // By index: an iterator is one more type made of `Value`.
        for index in 0..<inlets.count { await inlets[index].deliver(new, wave) }
    }

    /// Forgets the current value.
    func clear() {
        _ = lock.withLock { _ -> Value? in
            guard hasValue else { return nil }
            hasValue = false
            return cell.move()
        }
    }

    /// Attaches an inlet: it gets what is emitted from now on, after the current value where that is wanted.
    ///
    /// Returns when the current value has been delivered: whether there was one.
    @discardableResult
    func attach(_ inlet: Inlet<Value>, withCurrent: Bool, in wave: Wave? = nil) async -> Bool {
        let first = lock.withLock { _ -> Value? in
            lastNumber += 1
            inlet.number.store(lastNumber, ordering: .relaxed)
            let first = withCurrent && hasValue ? cell.pointee : nil
            if first == nil { inlet.open() }
            inlets.append(inlet)
            return first
        }
        guard let first else { return false }
        if let wave {
            await inlet.open(with: first, wave)
        } else {
            let wave = Wave()
            await wave.run { await inlet.open(with: first, wave) }
            await wave.settle()
        }
        return true
    }

    func detach(_ inlet: Inlet<Value>) {
        let number = inlet.number.load(ordering: .relaxed)
        // Released outside the lock, like everything that may be somebody's last reference.
        _ = lock.withLock { _ -> Inlet<Value>? in
            var (low, high) = (0, inlets.count)
            while low < high {
                let middle = (low + high) / 2
                if inlets[middle].number.load(ordering: .relaxed) < number {
                    low = middle + 1
                } else {
                    high = middle
                }
            }
            guard low < inlets.count, inlets[low] === inlet else { return nil }
            return inlets.remove(at: low)
        }
    }
}

extension Outlet: Upstream {
    var upstreams: [any Upstream] { lock.withLock { _ in above } }
    var wavesUnderWay: [Wave] { lock.withLock { _ in begun } }

    func end(_ wave: Wave) {
        lock.withLock { _ in
            // The same one twice where a wave begins with several values.
            if begun.count == 1, begun[0] === wave { begun.removeLast() } else { begun.removeAll { $0 === wave } }
        }
    }
}

extension Outlet: Downstream {
    func hang(below upstream: any Upstream) {
        lock.withLock { _ in above.append(upstream) }
        raise(to: upstream.height)
    }

    func leave(_ upstream: any Upstream) {
        lock.withLock { _ in
            guard let index = above.firstIndex(where: { $0 === upstream }) else { return }
            above.swapAt(index, above.count - 1)
            above.removeLast()
        }
    }

    func raise(to height: Int) {
        guard height > level.load(ordering: .relaxed) else { return }
        level.store(height, ordering: .relaxed)
        for inlet in lock.withLock({ _ in inlets }) { inlet.destination?.raise(to: height) }
    }
}
