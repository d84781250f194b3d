-- SPDX-License-Identifier: Apache-2.0
-- GUE variant 0 for tshark, which has no dissector of its own for it: the four header bytes by the draft's
-- layout (section 3.1), then tshark's own IP dissectors.
local gue = Proto("gue", "Generic UDP Encapsulation")
local fields = gue.fields

fields.variant = ProtoField.uint8("gue.variant", "Variant", base.DEC, nil, 0xc0)
fields.control = ProtoField.uint8("gue.control", "Control", base.DEC, nil, 0x20)
fields.hlen = ProtoField.uint8("gue.hlen", "Header length", base.DEC, nil, 0x1f)
fields.protocol = ProtoField.uint8("gue.protocol", "Protocol", base.DEC)
fields.flags = ProtoField.uint16("gue.flags", "Flags", base.HEX)

local inner = {[4] = Dissector.get("ip"), [41] = Dissector.get("ipv6")}

function gue.dissector(buffer, pinfo, tree)
	local header = tree:add(gue, buffer(0, 4))

	header:add(fields.variant, buffer(0, 1))
	header:add(fields.control, buffer(0, 1))
	header:add(fields.hlen, buffer(0, 1))
	header:add(fields.protocol, buffer(1, 1))
	header:add(fields.flags, buffer(2, 2))
	local dissector = inner[buffer(1, 1):uint()]
	if dissector then
		dissector:call(buffer(4):tvb(), pinfo, tree)
	end
end

DissectorTable.get("udp.port"):add(6080, gue)
