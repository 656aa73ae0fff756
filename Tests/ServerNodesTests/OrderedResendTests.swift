import Testing
import TrebuchetCluster

@testable import Trebuchet

/// In which order calls go to the owner of a slot.
@Suite struct OrderedResendTests {
    private let (a, b): (ClusterNode, ClusterNode)

    init() throws { (a, b) = (try ClusterNode(name: "a"), try ClusterNode(name: "b")) }

    /// Calls `numbers`, which are at a.
    private func sent(_ numbers: ClosedRange<UInt64>) -> OrderedResend<String> {
        var order = OrderedResend<String>()
        for number in numbers { order.didSend(number, to: a) }
        return order
    }

    @Test("what comes back goes before what came later, and when all are back", arguments: [[1, 2, 3], [3, 1, 2]])
    func comingBack(numbers: [UInt64]) {
        var order = sent(1...3)
        #expect(isLetGo(&order, to: a))
        for (index, number) in numbers.enumerated() {
            order.requeue("\(number)", number)
            order.addCall("\(number + 10)", number + 10)
            #expect(order.awaitsResponses == (index < 2))
            for node in [a, b] { #expect(isLetGo(&order, to: node) == (index == 2)) }
        }
        #expect(order.removeAll() == ["1", "2", "3", "11", "12", "13"])
        #expect(order.isEmpty)
    }

    @Test("an answer or a cancellation is waited for as a refusal is")
    func ends() {
        var order = sent(1...3)
        order.requeue("1", 1)
        order.didEnd(2)
        #expect(!isLetGo(&order, to: b))
        order.didEnd(3)
        #expect(isLetGo(&order, to: b))
        order.remove(1)
        #expect(order.isEmpty)
    }

    @Test("nothing goes to another owner while calls are at the one before, and nothing to that one then")
    func anotherOwner() {
        var order = sent(1...1)
        #expect(!isLetGo(&order, to: b) && order.awaitsResponses && !isLetGo(&order, to: a))
        order.didEnd(1)
        #expect(isLetGo(&order, to: b))
    }

    private func isLetGo(_ order: inout OrderedResend<String>, to node: ClusterNode) -> Bool { order.maySend(to: node) }

    @Test("nothing waits for longer than it is told to, and what comes back then goes behind")
    func givingUp() {
        var order = sent(1...2)
        order.requeue("2", 2)
        let round = order.round
        order.clearInFlight()
        #expect(order.round != round && isLetGo(&order, to: b))
        #expect(order.removeAll() == ["2"])
        order.didSend(2, to: b)
        order.requeue("1", 1)
        #expect(isLetGo(&order, to: b) && !isLetGo(&order, to: a))
    }
}
