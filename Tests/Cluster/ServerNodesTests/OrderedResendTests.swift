import Testing
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes

/// The order of calls to the owner of a slot.
@Suite struct OrderedResendTests {
    private let (a, b): (ClusterNode, ClusterNode)

    init() throws { (a, b) = (try ClusterNode(name: "a"), try ClusterNode(name: "b")) }

    /// The state after sending the calls `numbers` to node a.
    private func sent(_ numbers: ClosedRange<UInt64>) -> OrderedResend<String> {
        var order = OrderedResend<String>()
        for number in numbers { order.didSend(number, to: a) }
        return order
    }

    @Test(
        "returned calls are sent before later ones, once all have been returned", arguments: [[1, 2, 3], [3, 1, 2]])
    func comingBack(numbers: [UInt64]) {
        var order = sent(1...3)
        #expect(maySend(&order, to: a))
        for (index, number) in numbers.enumerated() {
            order.requeue("\(number)", number)
            order.addCall("\(number + 10)", number + 10)
            #expect(order.awaitsResponses == (index < 2))
            for node in [a, b] { #expect(maySend(&order, to: node) == (index == 2)) }
        }
        #expect(order.removeAll() == ["1", "2", "3", "11", "12", "13"])
        #expect(order.isEmpty)
    }

    @Test("a call that was answered or cancelled counts as returned")
    func ends() {
        var order = sent(1...3)
        order.requeue("1", 1)
        order.didEnd(2)
        #expect(!maySend(&order, to: b))
        order.didEnd(3)
        #expect(maySend(&order, to: b))
        order.remove(1)
        #expect(order.isEmpty)
    }

    @Test("no call is sent to another owner while calls are at the previous one, nor to the previous one then")
    func anotherOwner() {
        var order = sent(1...1)
        #expect(!maySend(&order, to: b) && order.awaitsResponses && !maySend(&order, to: a))
        order.didEnd(1)
        #expect(maySend(&order, to: b))
    }

    private func maySend(_ order: inout OrderedResend<String>, to node: ClusterNode) -> Bool { order.maySend(to: node) }

    @Test("no call waits after the timeout, and calls returned later are appended")
    func abandonedCalls() {
        var order = sent(1...2)
        order.requeue("2", 2)
        let round = order.round
        order.clearInFlight()
        #expect(order.round != round && maySend(&order, to: b))
        #expect(order.removeAll() == ["2"])
        order.didSend(2, to: b)
        order.requeue("1", 1)
        #expect(maySend(&order, to: b) && !maySend(&order, to: a))
    }
}
