internal import Synchronization
package import Transports

/// The part of a reactor that the watchdog reads.
extension Reactor {
    /// Records the current activity for the watchdog, with a single store. It is valid until the next record or the next phase of
    /// the turn.
    @inline(__always)
    package func recordActivity(_ label: ActivityLabel) {
        activity.store(UInt(bitPattern: Unmanaged.passUnretained(label).toOpaque()), ordering: .relaxed)
    }

    /// A handler for turns that take more than 100 ms. It is called on the watchdog's thread when such a turn is detected and
    /// when it ends. There is one per reactor; nil, the default, for none.
    package var onStall: (@Sendable (ReactorStall) -> Void)? {
        get { stalls.withLock { $0.observer } }
        set { stalls.withLock { $0.observer = newValue } }
    }

    /// The number of turns that took more than 100 ms.
    package var stallCount: Int { stalls.withLock { $0.count } }

    static func isWorking(_ pulse: UInt64) -> Bool { pulse & 1 == 1 }

    var activityText: String {
        guard let address = UnsafeRawPointer(bitPattern: activity.load(ordering: .relaxed)) else { return "starting" }
        return Unmanaged<ActivityLabel>.fromOpaque(address).takeUnretainedValue().text
    }

    func reportStall(_ stall: ReactorStall) {
        let observer = stalls.withLock { stalls in
            if !stall.isOver { stalls.count += 1 }
            return stalls.observer
        }
        observer?(stall)
    }
}
