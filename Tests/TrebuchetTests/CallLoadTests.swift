import Testing

@testable import Trebuchet

@Suite("What the calls of a connection weigh")
struct CallLoadTests {
    @Test("it is measured how long every sixteenth of those in transit takes, the first among them")
    func samples() {
        var load = CallLoad()
        let samples = (1...40).filter { count in
            load.inTransit = count
            return load.isSample
        }
        #expect(samples == [1, 17, 33])
    }

    @Test("the longer calls take, the fewer are let go at once, but one in any case")
    func full() {
        var load = CallLoad()
        for (microseconds, most) in [(0, 256), (1, 256), (2, 250), (100, 5), (125, 4), (499, 1), (100_000, 1)] {
            load = CallLoad()
            for _ in 0..<200 { load.note(nanoseconds: UInt64(microseconds) * 1_000) }
            let allowed = (0...256).first { count in
                load.inTransit = count
                return load.isFull
            }
            #expect(allowed == most, "\(microseconds) µs")
            load.inTransit = most / 2
            #expect(load.isHalfEmpty)
            load.inTransit = most / 2 + 1
            #expect(!load.isHalfEmpty)
        }
    }

    @Test("bytes in transit are bounded too")
    func bytes() {
        var load = CallLoad()
        load.bytesInTransit = CallLoad.mostBytesInTransit - 1
        #expect(!load.isFull)
        load.bytesInTransit = CallLoad.mostBytesInTransit
        #expect(load.isFull && !load.isHalfEmpty)
        load.bytesInTransit = CallLoad.mostBytesInTransit / 2
        #expect(load.isHalfEmpty)
    }
}
