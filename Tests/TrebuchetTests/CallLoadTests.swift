import Testing

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

@Suite("What the calls of a connection weigh")
struct CallLoadTests {
    @Test("calls and bytes in transit are bounded, each by itself; half of both must be back before more is read")
    func bounds() {
        for (most, set) in [
            (CallLoad.maximumInTransitCalls, { (load: inout CallLoad, count: Int) in load.inTransit = count }),
            (CallLoad.maximumInTransitBytes, { (load: inout CallLoad, count: Int) in load.bytesInTransit = count }),
        ] {
            var load = CallLoad()
            #expect(!load.isFull && load.isHalfEmpty)
            set(&load, most - 1)
            #expect(!load.isFull && !load.isHalfEmpty)
            set(&load, most)
            #expect(load.isFull && !load.isHalfEmpty)
            set(&load, most / 2)
            #expect(!load.isFull && load.isHalfEmpty)
            set(&load, most / 2 + 1)
            #expect(!load.isHalfEmpty)
        }
    }
}
