import Testing

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

@Suite("The load of a connection's calls")
struct CallLoadTests {
    @Test("calls and bytes in transit have separate limits; reading resumes when both are at half")
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
