import Testing
import Trebuchet

@testable import TrebuchetServices
@testable import TrebuchetServicesClient

@Suite struct RoomPlanTests {
    private let ticket = RoomTicket(
        membershipID: "s", token: "t", events: EventPosition(epoch: "e", last: 0))
    private let quiet = JSONValue.object(["name": .string("Ada"), "typing": .bool(false)])
    private let typing = JSONValue.object(["name": .string("Ada"), "typing": .bool(true)])

    private func joinedPlan() -> RoomPlan {
        var plan = RoomPlan()
        plan.users = 1
        plan.setPresence(quiet)
        plan.connected()
        plan.joined(ticket, showing: quiet)
        return plan
    }

    @Test("the presence shown before the join is sent with the join")
    func join() {
        var plan = RoomPlan()
        plan.users = 1
        plan.setPresence(quiet)
        plan.setPresence(typing)
        #expect(plan.next(hasEvents: true) == .wait)
        plan.connected()
        #expect(plan.next(hasEvents: true) == .join(presence: typing, token: nil))
        plan.joined(ticket, showing: typing)
        #expect(plan.next(hasEvents: false) == .wait)
        #expect(plan.next(hasEvents: true) == .publish)
    }

    @Test("later changes are sent as a patch, or whole when a patch cannot express them")
    func patch() {
        var plan = joinedPlan()
        plan.setPresence(typing)
        #expect(plan.next(hasEvents: false) == .patch(.object(["typing": .bool(true)])))
        plan.didSetPresence(typing)
        #expect(plan.next(hasEvents: false) == .wait)
        plan.setPresence(.object(["name": .null]))
        #expect(plan.next(hasEvents: false) == .set(.object(["name": .null])))
        plan.setPresence(nil)
        #expect(plan.next(hasEvents: false) == .set(nil))
    }

    @Test("over a new connection the room is joined again, with the token and the latest presence")
    func reconnect() {
        var plan = joinedPlan()
        plan.disconnected(nil)
        plan.setPresence(typing)
        #expect(plan.next(hasEvents: true) == .wait)
        plan.connected()
        #expect(plan.next(hasEvents: true) == .join(presence: typing, token: "t"))
        #expect(plan.failed(.join(presence: typing, token: "t"), with: RoomError.unknownToken) == nil)
        #expect(plan.next(hasEvents: true) == .join(presence: typing, token: nil))
    }

    @Test("a leave without a connection is remembered, and cancelled by a new use")
    func leaveOffline() {
        var plan = joinedPlan()
        plan.disconnected(nil)
        plan.users = 0
        #expect(plan.next(hasEvents: false) == .wait)
        plan.connected()
        #expect(plan.next(hasEvents: false) == .leave(token: "t"))
        plan.users = 1
        #expect(plan.next(hasEvents: false) == .join(presence: quiet, token: "t"))
        plan.users = 0
        plan.left()
        #expect(plan.next(hasEvents: false) == .end)
        plan.users = 1
        #expect(plan.next(hasEvents: false) == .join(presence: quiet, token: nil))
    }

    @Test("a leave of an ended membership is complete; one that fails otherwise is repeated")
    func leaveFails() {
        var plan = joinedPlan()
        plan.users = 0
        let step = RoomPlan.Step.leave(token: "t")
        #expect(plan.failed(step, with: TrebuchetError(.unknownOutcome, "cut")) != nil)
        #expect(plan.next(hasEvents: false) == .wait)
        plan.connected()
        #expect(plan.next(hasEvents: false) == step)
        #expect(plan.failed(step, with: RoomError.unknownToken) == nil)
        #expect(plan.next(hasEvents: false) == .end)
    }

    @Test("a leave after a join without a response proves the membership with the secret of the join")
    func leavesJoinInDoubt() {
        var plan = RoomPlan(attempt: "secret")
        plan.users = 1
        plan.connected()
        let join = RoomPlan.Step.join(presence: nil, token: nil)
        _ = plan.failed(join, with: TrebuchetError(.unavailable, "not sent"))
        plan.users = 0
        #expect(plan.next(hasEvents: false) == .end, "it was not sent")
        plan.users = 1
        _ = plan.failed(join, with: TrebuchetError(.unknownOutcome, "cut"))
        plan.disconnected(nil)
        plan.users = 0
        #expect(plan.next(hasEvents: false) == .wait)
        plan.connected()
        let step = RoomPlan.Step.leave(token: "secret")
        #expect(plan.next(hasEvents: false) == step)
        #expect(plan.failed(step, with: RoomError.rateLimited(retryAfterMilliseconds: 5)) == .milliseconds(5))
        plan.retry()
        #expect(plan.next(hasEvents: false) == step)
        #expect(plan.failed(step, with: RoomError.unknownToken) == nil)
        #expect(plan.next(hasEvents: false) == .end)
    }

    @Test("a closed room is joined again, without the old token")
    func closed() {
        var plan = joinedPlan()
        plan.setPresence(typing)
        let step = RoomPlan.Step.patch(.object(["typing": .bool(true)]))
        #expect(plan.failed(step, with: RoomError.roomClosed) == nil)
        #expect(plan.next(hasEvents: true) == .join(presence: typing, token: nil))
    }

    @Test("a refused presence does not prevent joining, and is not sent again until it changes")
    func refused() {
        var plan = RoomPlan()
        plan.users = 1
        plan.setPresence(typing)
        plan.connected()
        let error = RoomError.presenceTooLarge(bytes: 2, limit: 1)
        #expect(plan.failed(.join(presence: typing, token: nil), with: error) == nil)
        #expect(plan.next(hasEvents: false) == .join(presence: nil, token: nil))
        plan.joined(ticket, showing: nil)
        #expect(plan.next(hasEvents: false) == .wait)
        plan.setPresence(quiet)
        #expect(plan.next(hasEvents: false) == .set(quiet))
    }

    @Test("a refused join is repeated with increasing delays, and immediately over a new connection")
    func backoff() {
        var plan = RoomPlan()
        plan.users = 1
        plan.connected()
        let step = RoomPlan.Step.join(presence: nil, token: nil)
        let delays = (0..<9).map { _ in
            plan.retry()
            return plan.failed(step, with: RoomError.roomFull(limit: 1))
        }
        #expect(delays.prefix(3) == [.milliseconds(100), .milliseconds(200), .milliseconds(400)])
        #expect(delays.last == .seconds(10))
        #expect(plan.next(hasEvents: false) == .wait)
        #expect(plan.error as? RoomError == .roomFull(limit: 1))
        plan.connected()
        #expect(plan.next(hasEvents: false) == step)
        plan.joined(ticket, showing: nil)
        #expect(plan.error == nil)
    }

    @Test("rate-limited updates wait for the time set by the server, and end with the latest one")
    func rateLimited() {
        var plan = joinedPlan()
        plan.setPresence(typing)
        let wait = plan.failed(.patch(typing), with: RoomError.rateLimited(retryAfterMilliseconds: 40))
        #expect(wait == .milliseconds(40))
        #expect(plan.next(hasEvents: false) == .wait)
        plan.setPresence(.object(["name": .string("A"), "typing": .bool(true)]))
        plan.retry()
        #expect(plan.next(hasEvents: false) == .patch(.object(["name": .string("A"), "typing": .bool(true)])))
    }

    @Test("presences and events take turns, so that neither delays the other")
    func turns() {
        var plan = joinedPlan()
        plan.setPresence(typing)
        #expect(plan.next(hasEvents: true) == .publish)
        plan.published()
        #expect(plan.next(hasEvents: true) == .patch(.object(["typing": .bool(true)])))
        plan.didSetPresence(typing)
        plan.setPresence(quiet)
        #expect(plan.next(hasEvents: true) == .publish)
    }

    @Test("a refused presence is not sent again, unless it is set again")
    func refusedAgain() {
        var plan = RoomPlan()
        plan.users = 1
        plan.setPresence(.integer(1))
        plan.connected()
        let joining = plan.next(hasEvents: false)
        plan.joined(
            RoomTicket(membershipID: "s", token: "t", events: EventPosition(epoch: "e", last: 0)), showing: .integer(1))
        plan.setPresence(.integer(2))
        let first = plan.next(hasEvents: false)
        _ = plan.failed(first, with: RoomError.presenceTooLarge(bytes: 2, limit: 1))
        let behind = plan.next(hasEvents: false)
        plan.setPresence(.integer(2))
        let again = plan.next(hasEvents: false)
        #expect(joining == .join(presence: .integer(1), token: nil))
        #expect([first, behind, again] == [.set(.integer(2)), .wait, .set(.integer(2))])
    }

    @Test("repeatedly losing the streams of a joined room is an error, and joins become less frequent")
    func losses() {
        var plan = joinedPlan()
        let refusal = TrebuchetError(.unauthorized, "no")
        var waits: [Duration] = []
        for _ in 0..<9 {
            waits.append(plan.lost(refusal))
            plan.retry()
            plan.joined(ticket, showing: quiet)
            // A single loss is normal: the room may have moved.
            #expect((plan.error == nil) == (waits.count == 1))
        }
        #expect(waits == [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000].map { .milliseconds($0) })
        // The response to a call is no evidence of a working stream.
        plan.answered()
        #expect(plan.error != nil)
        plan.recordActivity()
        #expect(plan.error == nil)
        #expect(plan.lost(refusal) == .milliseconds(100))
    }
}
