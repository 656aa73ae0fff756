public import Synchronization

/// The output of a stream: its current value and the attached inlets.
public final class Outlet<Value: Sendable>: Sendable {
    // The value is stored apart from the state, and the inlets are stored without their type, because types generic over
    // `Value` would be looked up at each delivery, which took half of its time.
    @usableFromInline let state: Mutex<OutletState>
    /// Initialized when `hasValue` is true.
    // `nonisolated(unsafe)`: accessed only under the lock of `state`.
    @usableFromInline nonisolated(unsafe) let cell = UnsafeMutablePointer<Value>.allocate(capacity: 1)
    @usableFromInline let keepsValue: Bool
    private let level: Atomic<Int>

    /// Creates an outlet.
    ///
    /// - Parameter keepsValue: false for a stream of impulses, which never has a current value.
    init(_ value: Value? = nil, keepsValue: Bool = true, height: Int = 0) {
        if let value { cell.initialize(to: value) }
        state = Mutex(OutletState(hasValue: value != nil))
        self.keepsValue = keepsValue
        level = Atomic(height)
    }

    deinit {
        if state.withLock({ $0.hasValue }) { cell.deinitialize(count: 1) }
        cell.deallocate()
    }

    var current: Value? { state.withLock { $0.hasValue ? cell.pointee : nil } }
    var height: Int { level.load(ordering: .relaxed) }
    /// The number of attached inlets.
    package var inletCount: Int { state.withLock { $0.inlets.count } }

    /// Makes the value current and delivers it to the inlets attached at this moment, one after another.
    @inlinable
    @inline(__always)
    nonisolated(nonsending) func emit(_ new: Value, _ wave: Wave) async {
        let inlets = makeCurrent(new, wave)
        // By index: an iterator would need another generic type.
        for index in 0..<inlets.count { await inlet(inlets[index]).deliver(new, wave) }
    }

    /// Makes the value current. Returns the inlets that receive it.
    ///
    /// Separate from `emit`, where its temporary storage would come from the task's allocator.
    @inlinable
    @inline(never)
    func makeCurrent(_ new: Value, _ wave: Wave) -> [any AnyObject & Sendable] {
        // The old value leaves the lock before its release: its `deinit` may use this stream.
        var old = new
        let isFirst = wave.originates(in: self)
        let inlets = state.withLock { state in
            // In one step with the list of receivers: an inlet attached later finds the wave here.
            if isFirst { state.activeWaves.append(wave) }
            if keepsValue {
                if state.hasValue {
                    swap(&cell.pointee, &old)
                } else {
                    cell.initialize(to: new)
                    state.hasValue = true
                }
            }
            return state.inlets
        }
        withExtendedLifetime(old) {}
        return inlets
    }

    @inlinable
    @inline(__always)
    func inlet(_ stored: any AnyObject & Sendable) -> Inlet<Value> {
        // Only inlets of this value type are ever attached.
        unsafeDowncast(stored, to: Inlet<Value>.self)
    }

    /// Creates the wave of a value that is sent here.
    @usableFromInline
    func makeWave() -> Wave { Wave(from: self) }

    /// Removes the current value.
    func clear() {
        _ = state.withLock { state -> Value? in
            guard state.hasValue else { return nil }
            state.hasValue = false
            return cell.move()
        }
    }

    /// Attaches an inlet, which gets the values emitted from now on, after the current value if `withCurrent` is true.
    ///
    /// Returns after the delivery of the current value: true if there was one.
    @discardableResult
    func attach(_ inlet: Inlet<Value>, withCurrent: Bool, in wave: Wave? = nil) async -> Bool {
        let first = state.withLock { state -> Value? in
            state.lastNumber += 1
            inlet.number.store(state.lastNumber, ordering: .relaxed)
            let first = withCurrent && state.hasValue ? cell.pointee : nil
            if first == nil { inlet.open() }
            state.inlets.append(inlet)
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
        // Released outside the lock, like every object whose last reference this may be.
        _ = state.withLock { state -> (any AnyObject & Sendable)? in
            var (low, high) = (0, state.inlets.count)
            while low < high {
                let middle = (low + high) / 2
                if self.inlet(state.inlets[middle]).number.load(ordering: .relaxed) < number {
                    low = middle + 1
                } else {
                    high = middle
                }
            }
            guard low < state.inlets.count, state.inlets[low] === inlet else { return nil }
            return state.inlets.remove(at: low)
        }
    }
}

/// The state that an outlet guards, except the value.
@usableFromInline
struct OutletState: Sendable {
    @usableFromInline var hasValue: Bool
    /// All are `Inlet<Value>`, in the order of attachment, which is the order of their numbers.
    @usableFromInline var inlets: [any AnyObject & Sendable] = []
    var lastNumber: UInt64 = 0
    var upstreams: [any Upstream] = []
    @usableFromInline var activeWaves: [Wave] = []
}

extension Outlet: Upstream {
    var upstreams: [any Upstream] { state.withLock { $0.upstreams } }
    var activeWaves: [Wave] { state.withLock { $0.activeWaves } }

    func removeWave(_ wave: Wave) {
        state.withLock { state in
            // A wave that begins with several values is listed several times.
            if state.activeWaves.count == 1, state.activeWaves[0] === wave {
                state.activeWaves.removeLast()
            } else {
                state.activeWaves.removeAll { $0 === wave }
            }
        }
    }
}

extension Outlet: Downstream {
    func addUpstream(_ upstream: any Upstream) {
        state.withLock { $0.upstreams.append(upstream) }
        raiseHeights(to: upstream.height)
    }

    func removeUpstream(_ upstream: any Upstream) {
        state.withLock { state in
            guard let index = state.upstreams.firstIndex(where: { $0 === upstream }) else { return }
            state.upstreams.swapAt(index, state.upstreams.count - 1)
            state.upstreams.removeLast()
        }
    }

    func raiseHeight(to height: Int) -> [(any Downstream, Int)] {
        guard height > level.load(ordering: .relaxed) else { return [] }
        level.store(height, ordering: .relaxed)
        return state.withLock { $0.inlets }.compactMap { inlet($0).destination.map { ($0, height) } }
    }
}
