function thread_init()
  drv = sysbench.sql.driver()
  con = drv:connect()
  stmt = con:prepare("{statement}")
  {bind}
end

function event()
  {event}
  stmt:execute()
end

function thread_done()
  stmt:close()
  con:disconnect()
end
