internal import Synchronization
package import Transports

/// What the watchdog sees of a reactor.
extension Reactor {
    /// Notes what the reactor does now, for the watchdog: one store. It holds until something else is noted or the turn goes on
    /// to its next part.
    @inline(__always)
    package func note(_ label: ActivityLabel) {
        activity.store(UInt(bitPattern: Unmanaged.passUnretained(label).toOpaque()), ordering: .relaxed)
    }

    /// Is told of each turn that takes more than 100 ms: when that is noticed, and when it is over. Called on the watchdog's
    /// thread. One for each reactor; nil, the default, for none.
    package var onStall: (@Sendable (ReactorStall) -> Void)? {
        get { stalls.withLock { $0.observer } }
        set { stalls.withLock { $0.observer = newValue } }
    }

    /// Turns so far that took more than 100 ms.
    package var stallCount: Int { stalls.withLock { $0.count } }

    static func isWorking(_ pulse: UInt64) -> Bool { pulse & 1 == 1 }

    var activityText: String {
        guard let address = UnsafeRawPointer(bitPattern: activity.load(ordering: .relaxed)) else { return "starting" }
        return Unmanaged<ActivityLabel>.fromOpaque(address).takeUnretainedValue().text
    }

    func tell(_ stall: ReactorStall) {
        let observer = stalls.withLock { stalls in
            if !stall.isOver { stalls.count += 1 }
            return stalls.observer
        }
        observer?(stall)
    }
}
