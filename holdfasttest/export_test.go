package holdfasttest

// DrainWithin is a drain with another limit.
var DrainWithin = drainWithin
